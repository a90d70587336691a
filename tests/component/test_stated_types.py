"""Parquet files with a stated schema of other types: Spark reads the stored bits of one type as another."""

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from tests.harness.ingester import Ingester

MOMENT = datetime(2026, 1, 5, 10, 30)


def source(job: Ingester, values: pa.Array, schema: str, **options: Any) -> dict[str, Any]:
    """Return the source of a Parquet file with the column `v`."""
    path = job.folder / f"{len(list(job.folder.iterdir()))}.parquet"
    parquet.write_table(pa.table({"id": pa.array(range(len(values))), "v": values}), path, **options)
    return {"path": str(path), "schema": f"id BIGINT, v {schema}"}


@pytest.mark.parametrize(
    ("values", "stated", "have"),
    [
        (pa.array([date(2026, 1, 5)]), "INT", "date"),
        (pa.array([date(2026, 1, 5)]), "BIGINT", "date"),
        (pa.array([5], pa.int32()), "DATE", "int"),
        (pa.array([MOMENT], pa.timestamp("us")), "BIGINT", "timestamp_ntz"),
        (pa.array([MOMENT], pa.timestamp("ms", "UTC")), "BIGINT", "timestamp"),
        (pa.array([MOMENT], pa.timestamp("ns", "UTC")), "BIGINT", "timestamp"),
        (pa.array([{"n": 300}], pa.struct({"n": pa.int32()})), "STRUCT<n: TINYINT>", "struct<n:int>"),
        (pa.array([{"n": 70_000}], pa.struct({"n": pa.int32()})), "STRUCT<n: SMALLINT>", "struct<n:int>"),
        (pa.array([{"n": 2**32 - 1}], pa.struct({"n": pa.uint32()})), "STRUCT<n: INT>", "struct<n:bigint>"),
        (pa.array([{"n": 2**64 - 1}], pa.struct({"n": pa.uint64()})), "STRUCT<n: BIGINT>", "struct<n:decimal(20,0)>"),
        (pa.array([[300]], pa.list_(pa.int32())), "ARRAY<TINYINT>", "array<int>"),
        (pa.array([[("a", 300)]], pa.map_(pa.string(), pa.int32())), "MAP<STRING, TINYINT>", "map<string,int>"),
        (pa.array([{"d": date(2026, 1, 5)}]), "STRUCT<d: INT>", "struct<d:date>"),
    ],
)  # fmt: skip
def test_bits_are_not_read_as_another_type(values: pa.Array, stated: str, have: str, job: Ingester) -> None:
    given = source(job, values, stated)
    wanted = stated.lower().replace(": ", ":").replace(", ", ",")
    assert job.refused(given) == f"{given['path']}: v is {have}, and source.schema has {wanted}"


@pytest.mark.parametrize(("precision", "stated"), [(9, "INT"), (9, "BIGINT"), (18, "BIGINT")])
def test_nested_decimals_are_not_read_as_whole_numbers(precision: int, stated: str, job: Ingester) -> None:
    """Spark and DuckDB store short decimals as whole numbers of their smallest unit."""
    prices = pa.array([{"p": Decimal("12.34")}], pa.struct({"p": pa.decimal128(precision, 2)}))
    given = source(job, prices, f"STRUCT<p: {stated}>", store_decimal_as_integer=True)
    refused = f"{given['path']}: v is struct<p:decimal({precision},2)>, and source.schema has "
    assert job.refused(given).startswith(refused)


def test_days_of_orc_are_no_times(job: Ingester) -> None:
    """Spark's reader of ORC fails on them."""
    path = str(job.folder / "in.orc")
    orc.write_table(pa.table({"id": [1], "v": pa.array([date(2026, 1, 5)])}), path)
    refused = f"{path}: v is date, and source.schema has timestamp_ntz"
    assert job.refused({"path": path, "schema": "id BIGINT, v TIMESTAMP_NTZ"}) == refused


@pytest.mark.parametrize(("precision", "stated", "value"), [(20, "BIGINT", 2**63), (10, "INT", 2**31)])
def test_large_decimals_of_orc_are_not_read_as_whole_numbers(
    precision: int, stated: str, value: int, job: Ingester
) -> None:
    path = str(job.folder / "in.orc")
    orc.write_table(pa.table({"id": [1], "v": pa.array([Decimal(value)], pa.decimal128(precision, 0))}), path)
    refused = f"{path}: v is decimal({precision},0), and source.schema has {stated.lower()}"
    assert job.refused({"path": path, "schema": f"id BIGINT, v {stated}"}) == refused


@pytest.mark.parametrize(
    ("values", "stated", "loaded"),
    [
        (pa.array([5], pa.int64()), "INT", 5),
        (pa.array([7.0]), "DECIMAL(10, 2)", Decimal("7.00")),
        (pa.array([{"n": 5}], pa.struct({"n": pa.int32()})), "STRUCT<n: BIGINT>", {"n": 5}),
        (pa.array([{"n": Decimal("1.5")}]), "STRUCT<n: DECIMAL(10, 2)>", {"n": Decimal("1.50")}),
        (pa.array([b"a"]), "STRING", "a"),
        (pa.array(["a"]), "BINARY", b"a"),
        (pa.array([[b"a"]]), "ARRAY<STRING>", ["a"]),
        (pa.array([MOMENT], pa.timestamp("us")), "TIMESTAMP", MOMENT.replace(tzinfo=timezone.utc)),
        (pa.array([date(2026, 1, 5)]), "TIMESTAMP_NTZ", datetime(2026, 1, 5)),
        (pa.array([{"d": date(2026, 1, 5)}]), "STRUCT<d: TIMESTAMP_NTZ>", {"d": datetime(2026, 1, 5)}),
        (pa.array([datetime(2026, 1, 5)], pa.timestamp("ns")), "DATE", date(2026, 1, 5)),
        (pa.array([datetime(2026, 1, 5)], pa.timestamp("us")), "DATE", date(2026, 1, 5)),
    ],
)
def test_types_that_store_each_value(values: pa.Array, stated: str, loaded: object, job: Ingester) -> None:
    job(source(job, values, stated))
    assert [row["v"] for row in job.rows()] == [loaded]


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_a_stated_day_refuses_a_time(unit: str, job: Ingester) -> None:
    given = source(job, pa.array([MOMENT], pa.timestamp(unit)), "DATE")
    refused = f"v: 1 value of type timestamp_ntz ({given['path']}) cannot be stored as date"
    assert job.refused(given).startswith(refused)
