"""Monthly files as suppliers of rides write them: types of columns change, and some columns have no type at first."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

ROWS = 50
"""Number of rides in a month."""
_TYPED_FROM = 13
"""Number of the first month whose surcharges have a type."""


def write_month(folder: Path, month: int, *, name: str = "", spoilt: bool = False) -> Path:
    """Write the rides of a month, counted from January 2018. The file appears under its name only when it is complete.

    Args:
        spoilt: True if all rides have wrong ids. Such a file must not be loaded.
    """
    year, of_year = 2018 + month // 12, month % 12 + 1
    start = datetime(year, of_year, 1)
    ids = [month * ROWS + number + (10**9 if spoilt else 0) for number in range(ROWS)]
    seats = [1 + number % 4 for number in range(ROWS)]
    columns = {
        "ride_id": pa.array(ids, pa.int64()),
        "started_at": pa.array([start + timedelta(minutes=number) for number in range(ROWS)], pa.timestamp("us")),
        "seats": pa.array(seats, pa.int64()) if month % 3 == 0 else pa.array(map(float, seats), pa.float64()),
        "surcharge": pa.array(surcharges(month), pa.float64()) if month >= _TYPED_FROM else pa.nulls(ROWS),
        "airport_fee": pa.nulls(ROWS),
    }
    path = folder / (name or f"rides_{year}-{of_year:02d}.parquet")
    being_written = path.with_name(f"{path.name}.part")
    parquet.write_table(pa.table(columns), being_written)
    return being_written.replace(path)


def surcharges(month: int) -> list[float | None]:
    """Return the surcharges of a month's rides."""
    return [2.5 if month >= _TYPED_FROM and number % 3 else None for number in range(ROWS)]


def assert_each_once(rows: list[dict[str, Any]], months: Iterable[int]) -> None:
    """Verify that the rows are those of these months, each exactly once, with the values of their files."""
    wanted = {
        month * ROWS + number: (1 + number % 4, surcharge)
        for month in months
        for number, surcharge in enumerate(surcharges(month))
    }
    ids = [row["ride_id"] for row in rows]
    assert len(ids) == len(set(ids)), f"{len(ids) - len(set(ids))} rows are there more than once"
    assert {row["ride_id"]: (row["seats"], row.get("surcharge")) for row in rows} == wanted
