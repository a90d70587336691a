"""Order the files of one listing of a landing zone, which all have the same time of arrival."""

import sqlite3

_ORDER = """
WITH pauses AS (
    SELECT path, written_at, coalesce(written_at - lag(written_at) OVER in_time > :pause, 0) AS is_after_pause
    FROM files WHERE listing >= :first WINDOW in_time AS (ORDER BY written_at, path)
), deliveries AS (
    SELECT path, sum(is_after_pause) OVER (ORDER BY written_at, path ROWS UNBOUNDED PRECEDING) AS delivery FROM pauses
)
INSERT INTO temp.ordered (path, number) SELECT path, row_number() OVER (ORDER BY delivery, path) FROM deliveries
"""
_STEP = 1e-6
"""Difference between the ages of two files of one listing, in seconds: about the least that a float of now can show."""


def order_files(database: sqlite3.Connection, listing: int | None, pause: float, now: float) -> None:
    """Set the positions of the files of a listing: by delivery, and by name within a delivery.

    Files that an earlier listing saw before it failed are among them.

    Args:
        database: the memory of the zone, in a transaction.
        listing: the number of the listing, which is complete.
        pause: time without a modification that separates two deliveries, in seconds.
        now: the time of the listing.
    """
    row = database.execute("SELECT value FROM details WHERE name = 'ordered'").fetchone()
    first = int(row[0]) + 1 if row else 0
    database.execute("CREATE TEMP TABLE ordered (path TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID")
    database.execute(_ORDER, {"first": first, "pause": pause})
    position = "(SELECT number FROM temp.ordered WHERE ordered.path = files.path)"
    database.execute(f"UPDATE files SET listed_at = ? + ? * {position} WHERE listing >= ?", [now, _STEP, first])
    database.execute("DROP TABLE temp.ordered")
    database.execute("INSERT OR REPLACE INTO details (name, value) VALUES ('ordered', ?)", [str(listing)])
