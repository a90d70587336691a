"""Columns and fields that some files of a run have and others lack."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from lakehouse.source_files import find_files, inspect_files
from sluice.pipeline.source import Source


def _missing(folder: Path, form: str, *rows: dict[str, Any]) -> list[tuple[str, dict[str, list[str]]]]:
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
        ("0", {"l": ["l[].b[][].e"]}),
        ("1", {"s": ["s"], "l": ["l[].b[][].d"]}),
        ("2", {"l": ["l"], "s": ["s.b"]}),
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
    assert (Path(missing.file).stem, missing.fields) == ("b", {"m.n": ["m.n[].y"]})
