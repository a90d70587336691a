"""Values of Arrow columns with dates and times outside the years 1 to 9999, which Python cannot represent."""

from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from engine.queries.sql import read_rows
from sluice.sql.arrow_values import python_rows, python_values

_LATE = 253_402_300_800 * 10**6
"""The beginning of the year 10000, in microseconds from 1970-01-01."""
_LATE_TEXT = "10000-01-01 00:00:00.000000"
_TIME = pa.timestamp("us")


@pytest.mark.parametrize(
    ("values", "kind", "shown"),
    [
        ([_LATE, 0, None], _TIME, [_LATE_TEXT, datetime(1970, 1, 1), None]),
        ([-(10**17)], pa.timestamp("us", "UTC"), ["-1199-02-15 14:13:20.000000+00:00"]),
        ([_LATE], pa.timestamp("us", "+02:00"), [f"{_LATE_TEXT}+00:00"]),
        ([2_932_897, -800_000], pa.date32(), ["10000-01-01", "-0221-09-04"]),
        ([[_LATE, None], []], pa.list_(_TIME), [[_LATE_TEXT, None], []]),
        (
            [{"a": _LATE, "b": "x"}, None],
            pa.struct({"a": _TIME, "b": pa.string()}),
            [{"a": _LATE_TEXT, "b": "x"}, None],
        ),
        ([[("k", _LATE)]], pa.map_(pa.string(), _TIME), [[("k", _LATE_TEXT)]]),
        ([1, None], pa.int64(), [1, None]),
    ],
)
def test_a_time_that_python_cannot_represent_becomes_its_text(
    values: list[Any], kind: pa.DataType, shown: list[Any]
) -> None:
    column = pa.array(values, kind)
    assert python_values(column) == python_values(pa.chunked_array([column])) == shown
    assert python_rows(pa.table({"c": column})) == [{"c": each} for each in shown]


def test_a_query_shows_such_times() -> None:
    with duckdb.connect() as connection:
        rows = read_rows(connection, "SELECT DATE '10000-01-01' AS day, {'at': TIMESTAMP '20000-01-01 01:02:03'} AS s")
    assert rows.rows == [["10000-01-01", {"at": "20000-01-01 01:02:03.000000"}]]
