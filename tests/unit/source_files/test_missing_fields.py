"""Columns and fields that some files of a run have and others lack."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc, parquet
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructType

from lakehouse.source_files import find_files, inspect_files
from sluice.contracts.spark_jobs import IngestSpec, MissingFields
from sluice.errors import InvalidInput
from sluice.pipeline.source import Source
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write
from spark_jobs.source_files.file_columns import check_merged_files


def _missing(folder: Path, form: str, *rows: dict[str, Any]) -> list[tuple[str, list[str]]]:
    for number, row in enumerate(rows):
        table, path = pa.Table.from_pylist([row]), str(folder / f"{number}.{form}")
        orc.write_table(table, path) if form == "orc" else parquet.write_table(table, path)
    source = Source.model_validate({"path": f"{folder}/*.{form}"})
    missing = inspect_files(find_files(source), source).missing_fields
    return [(Path(each.file).stem, each.fields) for each in missing]


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_the_first_file_that_lacks_a_field_is_named(form: str, tmp_path: Path) -> None:
    whole = {"id": 1, "s": {"a": 1, "b": {"c": 1}}, "l": [{"a": 1, "b": [[{"d": 1}]]}]}
    other = {"ID": 1, "S": {"A": 1, "b": {"c": 2}}, "l": [{"b": [[{"d": 2}]], "a": 2}]}
    assert _missing(tmp_path, form, whole, other) == []
    assert _missing(tmp_path, form, whole, {"id": 1, "l": [{"a": 1, "b": [[{"e": 2}]]}]}, {"id": 1, "s": {"a": 1}}) == [
        ("0", ["l[].b[][].e"]),
        ("1", ["s", "l[].b[][].d"]),
        ("2", ["l", "s.b"]),
    ]


def test_files_without_rows_and_columns_without_a_type_lack_nothing(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"id": pa.array([], pa.int64())}), tmp_path / "empty.parquet")
    assert _missing(tmp_path, "parquet", {"id": 1, "s": {"a": 1}}, {"id": 2, "s": None}) == []


def test_values_of_maps(tmp_path: Path) -> None:
    for name, fields in (("a", {"x": pa.int64(), "y": pa.int64()}), ("b", {"x": pa.int64()})):
        values = pa.array([[("k", {"x": 1})]], pa.map_(pa.string(), pa.struct(fields)))
        parquet.write_table(pa.table({"m.n": values}), tmp_path / f"{name}.parquet")
    source = Source.model_validate({"path": f"{tmp_path}/*.parquet"})
    (missing,) = inspect_files(find_files(source), source).missing_fields
    assert (Path(missing.file).stem, missing.fields) == ("b", ["m.n[].y"])


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        (["new", "s.new", "l[].new", "l[].t.new", "m[].new"], ""),
        (["s.new", "S.A"], "S.A"),
        (["l[].t.a", "m[].a", "s"], "l[].t.a, m[].a, s"),
        (["id", "s", "l", "m", "s.a", "m[].a", "l[].t"], "id, s, l, m, s.a and 2 more"),
    ],
)
def test_a_merge_refuses_files_without_fields_of_the_table(missing: list[str], named: str) -> None:
    inner = StructType().add("a", LongType())
    target = StructType().add("id", LongType()).add("s", inner).add("m", MapType(StringType(), inner))
    target.add("l", ArrayType(StructType().add("t", inner)))
    write = Write.model_validate({"source": {"path": "*.parquet"}, "mode": "merge", "keys": ["id"]})
    files = [MissingFields(file="a.parquet", fields=missing)]
    spec = IngestSpec(spark_catalog="c", write=write, missing_fields=files, tables={"n.t": Table()}, answer="")
    if not named:
        check_merged_files(spec, target)
        return
    with pytest.raises(InvalidInput) as refused:
        check_merged_files(spec, target)
    beginning = f"a.parquet has no column or field {named}, and a merge would set it to NULL in n.t: "
    assert str(refused.value).startswith(beginning)
