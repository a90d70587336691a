"""Columns in the footers of Parquet files."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from lakehouse.source_files.local import describe_local
from lakehouse.source_files.parquet_footer import ParquetFooter, column_groups, read_footer
from sluice.errors import InvalidInput


def _write(path: Path, **columns: Any) -> Path:
    parquet.write_table(pa.table(columns), path)
    return path


def test_a_footer_tells_rows_and_types(tmp_path: Path) -> None:
    many = {f"column_{number}_{'x' * 60}": pa.array([1.5, None]) for number in range(1000)}
    file = _write(tmp_path / "a.parquet", id=pa.array([1, 2]), name=pa.array(["x", "y"]), fee=pa.nulls(2), **many)
    footer = read_footer(describe_local(file))  # longer than the first read
    assert (footer.rows, len(footer.types)) == (2, 1003)
    assert [footer.types[name] for name in ("id", "name", "fee")] == ["int64", "", "null"]


def test_times_of_int96_are_verified_unless_spark_wrote_them(tmp_path: Path) -> None:
    times = pa.table({"id": [1], "s": [{"t": 1}], "t": pa.array([1], pa.timestamp("ns"))})
    for metadata, columns in ((None, ["t"]), ({"org.apache.spark.version": "4.1.4"}, [])):
        path = tmp_path / "a.parquet"
        parquet.write_table(times.replace_schema_metadata(metadata), path, use_deprecated_int96_timestamps=True)
        assert [name for name, _ in read_footer(describe_local(path)).int96.columns] == columns


def test_a_file_without_row_groups_is_read(tmp_path: Path) -> None:
    parquet.ParquetWriter(tmp_path / "a.parquet", pa.schema({"id": pa.int64()})).close()
    assert read_footer(describe_local(tmp_path / "a.parquet")).rows == 0


@pytest.mark.parametrize("values", [[1.5, None], [1, None], [[1.5], None], [{"a": 1}, None], [b"abcd", None]])
def test_an_encoding_that_spark_does_not_read_is_refused(values: list[Any], tmp_path: Path) -> None:
    fixed = pa.array(values, pa.binary(4) if isinstance(values[0], bytes) else None)
    inner = {"list": "v.list.element", "dict": "v.a"}.get(type(values[0]).__name__, "v")
    path, encodings = tmp_path / "a.parquet", {inner: "BYTE_STREAM_SPLIT", "id": "PLAIN"}
    table = pa.table({"id": [1, 2], "v": fixed})
    parquet.write_table(table, path, use_dictionary=False, column_encoding=encodings)
    with pytest.raises(
        InvalidInput, match=rf"a\.parquet: the column {inner} has the encoding BYTE_STREAM_SPLIT, which"
    ):
        read_footer(describe_local(path))
    encodings[inner] = "PLAIN"
    parquet.write_table(table, path, use_dictionary=False, column_encoding=encodings)
    assert read_footer(describe_local(path)).rows == 2


@pytest.mark.parametrize("content", [b"PAR1", b"PAR1PAR1PAR1", b"PAR1" + b"\xff" * 8 + b"PAR1", b"x" * 100_000])
def test_a_file_that_is_no_whole_parquet_file(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(InvalidInput, match=r"a\.parquet is not a complete parquet file"):
        read_footer(describe_local(tmp_path / "a.parquet"))


@pytest.mark.parametrize(
    "type",
    [
        pa.list_(pa.null()),
        pa.struct({"a": pa.int32(), "b": pa.null()}),
        pa.map_(pa.string(), pa.null()),
        pa.list_(pa.struct({"a": pa.list_(pa.null())})),
    ],
)
def test_values_without_a_type_inside_others_are_refused(type: pa.DataType, tmp_path: Path) -> None:
    """Spark would read them as integers, and a table with such a column could not store the values of later files."""
    file = _write(tmp_path / "a.parquet", id=[1], tags=pa.nulls(1, type))
    with pytest.raises(InvalidInput, match=r"a\.parquet: the column tags is .*null.*: write the column with the type"):
        read_footer(describe_local(file))


@pytest.mark.parametrize("type", [pa.duration("ns"), pa.list_(pa.struct({"a": pa.duration("s")}))], ids=str)
def test_a_duration_is_refused(tmp_path: Path, type: pa.DataType) -> None:
    file = _write(tmp_path / "a.parquet", id=[1], wait=pa.nulls(1, type))
    with pytest.raises(InvalidInput, match=r"a\.parquet: the column wait is .*duration.*: write it as BIGINT"):
        read_footer(describe_local(file))


_PERIOD = {b"ARROW:extension:name": b"pandas.period", b"ARROW:extension:metadata": b'{"freq": "M"}'}
"""Metadata of a field with periods of pandas, which are stored as BIGINT."""


@pytest.mark.parametrize("is_nested", [False, True])
def test_a_period_of_pandas_is_refused(tmp_path: Path, is_nested: bool) -> None:
    field = pa.field("month", pa.int64(), metadata=_PERIOD)
    schema = pa.schema([pa.field("month", pa.list_(field)) if is_nested else field])
    parquet.write_table(pa.table({"month": [[648]] if is_nested else [648]}, schema=schema), tmp_path / "a.parquet")
    with pytest.raises(InvalidInput, match=r"a\.parquet: the column month has .*: write it as a DATE, or as text"):
        read_footer(describe_local(tmp_path / "a.parquet"))


@pytest.mark.parametrize(
    ("columns", "differing"), [(["id", "fee"], ""), (["id", "fee", "tax"], "tax"), (["id", "Fee"], "Fee, fee")]
)
def test_columns_that_were_written_after_spark_wrote_the_file(
    tmp_path: Path, columns: list[str], differing: str
) -> None:
    """Spark reads the columns of the schema that it stored in the metadata, which PyArrow copies."""
    fields: list[Any] = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in ("id", "fee")]
    stored = {"org.apache.spark.sql.parquet.row.metadata": json.dumps({"type": "struct", "fields": fields})}
    table = pa.table({name: [1] for name in columns}).replace_schema_metadata(stored)
    parquet.write_table(table, tmp_path / "a.parquet")
    if not differing:
        assert read_footer(describe_local(tmp_path / "a.parquet")).rows == 1
        return
    with pytest.raises(InvalidInput, match=rf"other columns were written since: {differing} would be lost or NULL"):
        read_footer(describe_local(tmp_path / "a.parquet"))


def test_files_are_grouped_by_columns_without_a_type_and_numbers_of_different_types(tmp_path: Path) -> None:
    contents: dict[str, dict[str, Any]] = {
        "a": {"id": [1], "fee": pa.nulls(1), "note": ["x"]},
        "b": {"id": [1.0], "fee": [2.5], "note": ["x"]},
        "c": {"id": [2.0], "fee": [3.5]},
        "d": {"id": [2], "fee": pa.nulls(1), "note": [b"x"]},
    }
    files = {name: _write(tmp_path / name, **columns) for name, columns in contents.items()}
    footers = {name: read_footer(describe_local(file)) for name, file in files.items()}
    groups = [(group.files, group.untyped) for group in column_groups(footers)]
    assert groups == [(["a", "d"], ["fee"]), (["b", "c"], [])]
    assert column_groups({name: footers[name] for name in "bc"}) == []
    assert [group.untyped for group in column_groups({"a": footers["a"]})] == [["fee"]]
    assert column_groups({}) == []


def _footers(tmp_path: Path, *contents: dict[str, Any]) -> dict[str, ParquetFooter]:
    files = {f"{number}": _write(tmp_path / f"{number}", **columns) for number, columns in enumerate(contents)}
    return {name: read_footer(describe_local(file)) for name, file in files.items()}


def test_files_without_a_column_join_a_group_of_files_that_have_it(tmp_path: Path) -> None:
    footers = _footers(
        tmp_path, {"a": [1]}, {"b": [1]}, {"a": [1.5], "b": [1.5]}, {"c": pa.nulls(1)}, {"C": [1]}, {"a": [2.5]}
    )
    groups = [(group.files, group.untyped) for group in column_groups(footers)]
    assert groups == [(["0", "1", "3"], ["c"]), (["2", "4", "5"], [])]


def test_columns_are_the_same_whatever_their_capital_letters(tmp_path: Path) -> None:
    footers = _footers(tmp_path, {"Fee": [1]}, {"FEE": [1.5]}, {"fee": pa.nulls(1)})
    assert [(group.files, group.untyped) for group in column_groups(footers)] == [
        (["0"], []),
        (["1"], []),
        (["2"], ["fee"]),
    ]


def test_files_of_the_same_columns_share_what_is_known_of_them(tmp_path: Path) -> None:
    first, second = _footers(tmp_path, {"a": [1], "b": ["x"]}, {"a": [2], "b": ["y"]}).values()
    assert first.types is second.types
