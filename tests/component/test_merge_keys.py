"""Keys of a merge: they are compared in the types of the table."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.harness.ingester import Ingester

BEYOND = 2**53 + 1
"""A whole number that DOUBLE does not store: the nearest one is 2^53."""


def source(job: Ingester, keys: pa.Array, values: Sequence[str], **more: pa.Array) -> dict[str, Any]:
    """Write a Parquet file with keys and values; return it as a source."""
    path = job.folder / f"{len(list(job.folder.iterdir()))}.parquet"
    parquet.write_table(pa.table({"id": keys, **more, "v": pa.array(values)}), path)
    return {"path": str(path)}


@pytest.mark.parametrize(
    ("of_table", "of_file", "merged"),
    [
        (pa.array([BEYOND], pa.int64()), pa.array([2.0**53]), [2**53, BEYOND]),
        (pa.array([Decimal(BEYOND)], pa.decimal128(20, 0)), pa.array([2.0**53]), [Decimal(2**53), Decimal(BEYOND)]),
        (pa.array(["05"]), pa.array([5], pa.int64()), ["05", "5"]),
        (pa.array(["2026-1-5"]), pa.array([date(2026, 1, 5)]), ["2026-01-05", "2026-1-5"]),
        (pa.array([1], pa.int64()), pa.array([1.0]), [1]),
        (pa.array([Decimal("0.10")]), pa.array([0.1]), [Decimal("0.10")]),
        (pa.array([0.1], pa.float32()), pa.array([0.5]), [0.10000000149011612, 0.5]),
        (pa.array([date(2026, 1, 5)]), pa.array([datetime(2026, 1, 5)], pa.timestamp("us")), [date(2026, 1, 5)]),
    ],
    ids=["bigint", "decimal", "text", "text_of_day", "whole", "fraction", "float", "day"],
)
def test_keys_are_compared_in_the_types_of_the_table(
    of_table: pa.Array, of_file: pa.Array, merged: list[object], job: Ingester
) -> None:
    job(source(job, of_table, ["old"]))
    job(source(job, of_file, ["new"]), mode="merge", keys=["id"])
    assert [row["id"] for row in job.rows()] == merged
    assert {row["v"] for row in job.rows()} == ({"new"} if len(merged) == 1 else {"old", "new"})


@pytest.mark.parametrize(
    ("of_table", "of_file", "such_as"),
    [
        (pa.array([2], pa.int64()), pa.array([3.0, 2.5]), "1 value of type double (FILE, such as 2.5)"),
        (pa.array([1.5]), pa.array([BEYOND], pa.int64()), f"1 value of type bigint (FILE, such as {BEYOND})"),
        (pa.array([0.5], pa.float32()), pa.array([0.1]), "1 value of type double (FILE, such as 0.1)"),
        (
            pa.array([date(2026, 1, 5)]),
            pa.array([datetime(2026, 1, 5, 10)], pa.timestamp("us")),
            "1 value of type timestamp_ntz (FILE, such as 2026-01-05 10:00:00)",
        ),
    ],
    ids=["fraction", "bigint", "float", "day"],
)
def test_a_key_that_the_table_does_not_store_exactly_is_refused(
    of_table: pa.Array, of_file: pa.Array, such_as: str, job: Ingester
) -> None:
    job(source(job, of_table, ["old"] * len(of_table)))
    given = source(job, of_file, ["new"] * len(of_file))
    refused = job.refused(given, mode="merge", keys=["id"], show_values=True)
    assert f"the merge key id: {such_as.replace('FILE', given['path'])} cannot be stored as " in refused
    assert "write CAST(id AS " in refused
    assert "such as" not in job.refused(given, mode="merge", keys=["id"])
    assert [row["v"] for row in job.rows()] == ["old"]


def test_fields_of_a_key_are_compared_by_name(job: Ingester) -> None:
    """Spark compares structs by the order of their fields."""
    job(source(job, pa.array([1]), ["old"], k=pa.array([{"a": 1, "b": 2}])))
    given = source(job, pa.array([1]), ["new"], k=pa.array([{"b": 1, "a": 2}]))
    refused = job.refused(given, mode="merge", keys=["k"])
    assert "the merge key k is struct<b:bigint,a:bigint> in the input, and struct<a:bigint,b:bigint> in the " in refused


def test_rows_whose_keys_become_one_key_of_the_table_are_refused(job: Ingester) -> None:
    transform = "SELECT id, v FROM VALUES (DATE'2026-01-05', 'a'), (TIMESTAMP_NTZ'2026-01-05', 'b') AS rows(id, v)"
    job(source(job, pa.array(["2026-01-05 00:00:00"]), ["old"]))
    given = source(job, pa.array([1]), ["new"])
    assert "occur more than once" in job.refused(given, mode="merge", keys=["id"], transform=transform)


def test_a_key_with_the_name_of_a_function(job: Ingester) -> None:
    job(source(job, pa.array([1]), ["old"], count=pa.array([7])))
    job(source(job, pa.array([2]), ["new"], count=pa.array([7])), mode="merge", keys=["count"])
    assert job.rows() == [{"id": 2, "count": 7, "v": "new"}]
    twice = source(job, pa.array([3, 4]), ["a", "b"], count=pa.array([8, 8]))
    refused = job.refused(twice, mode="merge", keys=["count"])
    assert "merge keys (count) occur more than once in the input: keep one row of each key" in refused, refused


def test_text_is_no_number_in_a_key(job: Ingester) -> None:
    job(source(job, pa.array([5], pa.int64()), ["old"]))
    refused = job.refused(source(job, pa.array(["05"]), ["new"]), mode="merge", keys=["id"])
    assert "id is string, and" in refused


def test_a_double_is_no_key_of_text(job: Ingester) -> None:
    """Whole numbers of pandas are DOUBLE where one is missing: `5.0` would be a second row beside `5`."""
    begin = job.folder / "begin.csv"
    begin.write_text("id,v\n5,a\n")
    job({"path": str(begin), "schema": "id STRING, v STRING"})
    path = str(job.folder / "in.parquet")
    parquet.write_table(pa.table({"id": [5.0], "v": ["b"]}), path)
    refused = job.refused({"path": path, "format": "parquet"}, mode="merge", keys=["id"])
    assert "the merge key id is double in the input, and text in the table: 5 would become '5.0'" in refused
    assert [row["v"] for row in job.rows()] == ["a"]


def test_a_transform_may_read_its_source_twice(job: Ingester) -> None:
    """Spark then refuses to name the file of a row."""
    transform = (
        "SELECT s.* FROM source AS s JOIN (SELECT id, max(at) AS at FROM source GROUP BY id) AS newest "
        "ON s.id = newest.id AND s.at = newest.at"
    )
    given = source(job, pa.array([1, 1, 2, None]), ["a", "b", "c", "d"], at=pa.array([1, 2, 3, 4]))
    answer = job(given, mode="merge", keys=["id"], transform=transform)
    assert (answer.rows_merged, [row["v"] for row in job.rows()]) == (2, ["b", "c"])
    refused = job.refused(given, mode="merge", keys=["id"], transform=transform.replace(" JOIN ", " LEFT JOIN "))
    assert refused.startswith("1 row without a value in a merge key (id): write a value into each"), refused
    halves = source(job, pa.array([1.5]), ["a"], at=pa.array([1]))
    refused = job.refused(halves, mode="merge", keys=["id"], transform=transform)
    assert refused.startswith("the merge key id: 1 value of type double cannot be stored as bigint"), refused
