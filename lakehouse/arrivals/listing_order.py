"""Order the files of one listing of a landing zone, which all have the same time of arrival."""

import sqlite3

_ORDER = """
WITH pauses AS (
    SELECT path, written_at, coalesce(written_at - lag(written_at) OVER in_time > :pause, 0) AS is_after_pause
    FROM files WHERE listing = :listing WINDOW in_time AS (ORDER BY written_at, path)
), deliveries AS (
    SELECT path, sum(is_after_pause) OVER (ORDER BY written_at, path ROWS UNBOUNDED PRECEDING) AS delivery FROM pauses
)
INSERT INTO temp.ordered (path, number) SELECT path, row_number() OVER (ORDER BY delivery, path) FROM deliveries
"""
_STEP = 1e-6
"""Difference between the ages of two files of one listing, in seconds: about the least that a float of now can show."""


def order_files(database: sqlite3.Connection, listing: int | None, pause: float) -> None:
    """Set the positions of the files of one listing: by delivery, and by name within a delivery.

    Args:
        pause: time without a modification that separates two deliveries, in seconds.
    """
    database.execute("CREATE TEMP TABLE ordered (path TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID")
    database.execute(_ORDER, {"listing": listing, "pause": pause})
    position = "(SELECT number FROM temp.ordered WHERE ordered.path = files.path)"
    database.execute(f"UPDATE files SET listed_at = changed_at + ? * {position} WHERE listing = ?", [_STEP, listing])
    database.execute("DROP TABLE temp.ordered")
