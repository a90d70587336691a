"""A worker's memory of copies in a landing zone: paths whose content a run loaded from another path.

Main's history has no path of a copy. Without this memory, new content at such a path would look like a first file.
"""

from collections.abc import Iterable, Sequence

from lakehouse.arrivals.zone_database import ZoneDatabase

_AT_ONCE = 400
_MOST = 100_000
"""Maximum number of copies to remember. The oldest are forgotten first."""


class CopyMemory(ZoneDatabase):
    """Part of a landing zone's memory about copies. Entries stay when a file is overwritten, moved or removed."""

    def record(self, copies: Iterable[tuple[str, str]]) -> None:
        """Record paths, each with the identity of the content that counts as loaded under it."""
        if not (rows := list(copies)):
            return
        with self._open() as database:
            database.executemany("INSERT OR IGNORE INTO copies (path, identity) VALUES (?, ?)", rows)
            database.execute(
                "DELETE FROM copies WHERE number <= (SELECT coalesce(max(number), 0) FROM copies) - ?", [_MOST]
            )
            database.execute("COMMIT")

    def identities(self, paths: Sequence[str]) -> dict[str, list[str]]:
        """Return the identities of the copies that these paths had, latest first, by path."""
        identities: dict[str, list[str]] = {}
        with self._open() as database:
            for start in range(0, len(paths), _AT_ONCE):
                some = paths[start : start + _AT_ONCE]
                marks = ", ".join("?" * len(some))
                select = f"SELECT path, identity FROM copies WHERE path IN ({marks}) ORDER BY number DESC"
                for path, identity in database.execute(select, list(some)):
                    identities.setdefault(path, []).append(identity)
        return identities
