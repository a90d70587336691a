"""Types that one library alone has: main has the values that the library reads, or the file is refused."""

import datetime
import decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness.ingester import Ingester
from tests.harness.plain_values import plain_value

_DAY, _NOON = datetime.datetime(2024, 1, 5), datetime.time(12)
_SPAN = datetime.timedelta(days=1)
_HALF = decimal.Decimal("1.5")
_NANOSECONDS = 1_700_000_000_000_000_000

_DUCKDB = {
    "hugeint": "1::HUGEINT",
    "uhugeint": "1::UHUGEINT",
    "bignum": "12::BIGNUM",
    "enum": "'a'::ENUM('a', 'b')",
    "bit": "'101'::BIT",
    "union": "union_value(num := 1)",
    "seconds": "'2024-01-05 10:30:00'::TIMESTAMP_S",
    "milliseconds": "'2024-01-05 10:30:00.123'::TIMESTAMP_MS",
    "nanoseconds": "'2024-01-05 10:30:00.123456'::TIMESTAMP_NS",
    "blob": "'\\xAA'::BLOB",
    "decimal38": "1.5::DECIMAL(38, 10)",
    "decimal4": "1.5::DECIMAL(4, 1)",
    "ubigint": "18446744073709551615::UBIGINT",
    "array": "[1, 2]::INT[2]",
    "json": """'{"a": 1}'::JSON""",
}
_POLARS = {
    "categorical": pl.Series(["a"], dtype=pl.Categorical),
    "enum": pl.Series(["a"], dtype=pl.Enum(["a"])),
    "array": pl.Series([[1, 2]], dtype=pl.Array(pl.Int32, 2)),
    "nanoseconds": pl.Series([_DAY], dtype=pl.Datetime("ns")),
    "zoned": pl.Series([_DAY], dtype=pl.Datetime("us", "Europe/Berlin")),
    "uint64": pl.Series([2**64 - 1], dtype=pl.UInt64),
    "nested": pl.Series([{"c": "a"}], dtype=pl.Struct({"c": pl.Categorical})),
}
_PANDAS = {
    "category": pd.Series(["a"], dtype="category"),
    "codes": pd.Series([3], dtype="category"),
    "int64": pd.Series([2**63 - 1], dtype="Int64"),
    "missing": pd.Series([None], dtype="Int64"),
    "boolean": pd.Series([True], dtype="boolean"),
    "string": pd.Series(["x"], dtype="string"),
    "default_time": pd.Series([pd.Timestamp("2024-01-05 10:30")]),
    "zoned": pd.Series([pd.Timestamp("2024-01-05 10:30", tz="Europe/Berlin")]),
    "decimal": pd.Series([_HALF]),
    "date": pd.Series([_DAY.date()]),
    "list": pd.Series([[1, 2]]),
    "dict": pd.Series([{"a": 1}]),
    "uint64": pd.Series([2**64 - 1], dtype="uint64"),
}
_ARROW = {
    "binary_view": pa.array([b"x"], pa.binary_view()),
    "decimal32": pa.array([_HALF], pa.decimal32(5, 1)),
    "decimal64": pa.array([_HALF], pa.decimal64(12, 1)),
    "list_view": pa.array([[1]], pa.list_view(pa.int32())),
    "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}'])),
    "codes": pa.array([5]).dictionary_encode(),
    "texts": pa.array([["a"]], pa.list_(pa.dictionary(pa.int32(), pa.string()))),
    "days": pa.array([[_DAY.date()]], pa.list_(pa.date64())),
}


def _write(library: str, columns: dict[str, Any], path: Path) -> dict[str, Any]:
    """Write a file with one row by a library; return the row that the library reads."""
    match library:
        case "DuckDB":
            with duckdb.connect() as connection:
                listed = ", ".join(f"{text} AS {name}" for name, text in {"id": "1", **columns}.items())
                connection.execute(f"COPY (SELECT {listed}) TO '{path}' (FORMAT PARQUET)")
                read = connection.execute(f"SELECT * FROM '{path}'")
                names = [each[0] for each in read.description or ()]
                return dict(zip(names, read.fetchone() or (), strict=True))
        case "Polars":
            pl.DataFrame({"id": [1], **columns}).write_parquet(path)
            return pl.read_parquet(path).row(0, named=True)
        case "pandas":
            pd.DataFrame({"id": [1], **columns}).to_parquet(path)
            return dict(pd.read_parquet(path).iloc[0])
    pq.write_table(pa.table({"id": [1], **columns}), path)
    return dict(pq.read_table(path).to_pylist()[0])


@pytest.mark.parametrize(
    ("library", "columns"),
    [("DuckDB", _DUCKDB), ("Polars", _POLARS), ("pandas", _PANDAS), ("PyArrow", _ARROW)],
    ids=["DuckDB", "Polars", "pandas", "PyArrow"],
)
def test_main_has_what_the_library_reads(job: Ingester, library: str, columns: dict[str, Any]) -> None:
    path = job.folder / "in.parquet"
    expected = _write(library, columns, path)
    job({"path": str(path)})
    (row,) = job.rows()
    assert row.keys() == expected.keys()
    assert not {name: (row[name], value) for name, value in expected.items() if _differ(row[name], value)}


def _differ(held: Any, read: Any) -> bool:
    value, other = plain_value(held), plain_value(read)
    return bool(value != other or isinstance(value, bool) != isinstance(other, bool))


@pytest.mark.parametrize(
    ("library", "column", "type"),
    [
        ("DuckDB", "TIME '10:30:00'", "TIME"),
        ("DuckDB", "TIMETZ '10:30:00+02'", "TIME"),
        ("DuckDB", "INTERVAL 1 DAY", "INTERVAL"),
        ("DuckDB", "uuid()", "UUID"),
        ("DuckDB", "{'u': uuid()}", "x.u is UUID"),
        ("DuckDB", "[TIME '10:30:00']", "x.list.element is TIME"),
        ("DuckDB", "1::VARIANT", "VARIANT"),
        ("Polars", pl.Series([1], dtype=pl.Int128), "INT128"),
        ("Polars", pl.Series([_SPAN], dtype=pl.Duration("us")), "duration[us]"),
        ("Polars", pl.Series([_NOON], dtype=pl.Time), "TIME"),
        ("Polars", pl.Series([[_DAY]], dtype=pl.List(pl.Datetime("ns"))), "x.list.element has nanoseconds"),
        ("pandas", pd.Series(pd.period_range("2024-01", periods=1, freq="M")), "values of a Python library"),
        ("pandas", pd.Series([pd.Timedelta("1 day")]), "duration[us]"),
        ("pandas", pd.Series([_NOON]), "TIME"),
        ("PyArrow", pa.array([{"d": _SPAN}]), "duration[us]"),
        ("PyArrow", pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8())), "write it as BOOLEAN"),
        ("PyArrow", pa.array([[("a", _NOON)]], pa.map_(pa.string(), pa.time32("ms"))), "x.key_value.value is TIME"),
        ("PyArrow", pa.array([[1.5]], pa.list_(pa.float16())), "x.list.element is FLOAT16"),
        ("PyArrow", pa.array([{"t": _NANOSECONDS}], pa.struct({"t": pa.timestamp("ns")})), "x.t has nanoseconds"),
    ],
)
def test_a_type_that_no_table_has_is_refused(job: Ingester, library: str, column: Any, type: str) -> None:
    path = job.folder / "in.parquet"
    _write(library, {"x": column}, path)
    refused = job.refused({"path": str(path)})
    assert refused.startswith(f"{path}: the ") and " x" in refused and type in refused, refused
