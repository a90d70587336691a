"""A worker's memory of the loaded files of a landing zone: the files tagged or moved, and those still to do."""

from dataclasses import dataclass

from lakehouse.arrivals.zone_database import ZoneDatabase

_TO_FINISH = "identity != '' AND try_at <= :now AND finished != :done AND status IN ('loaded', 'ignored')"
_MOST_MOVED = 10_000
"""Maximum number of moved files to remember; the command `files` lists all that were loaded."""


@dataclass(frozen=True)
class LoadedFile:
    """A file that was loaded on main at the last check, and is still in the zone."""

    path: str
    size: int
    state: str
    identity: str
    arrived_at: float
    detail: str


class FinishMemory(ZoneDatabase):
    """Part of a landing zone's memory about the files that are loaded on main."""

    def count_to_finish(self, done: str, now: float) -> int:
        """Return the number of files to tag or move now; `done` is the state of finished files, `tagged` or `moved`."""
        with self._open() as database:
            values = {"done": done, "now": now}
            return int(database.execute(f"SELECT count(*) FROM files WHERE {_TO_FINISH}", values).fetchone()[0])

    def count_put_off(self) -> int:
        """Return the number of files that could not be tagged or moved so far."""
        with self._open() as database:
            counted = database.execute("SELECT count(*) FROM files WHERE identity != '' AND problem != ''")
            return int(counted.fetchone()[0])

    def to_finish(self, done: str, now: float, limit: int) -> list[LoadedFile]:
        """Return files to tag or move now, beginning with those tried longest ago."""
        with self._open() as database:
            rows = database.execute(
                f"SELECT path, size, state, identity, arrived_at, detail FROM files WHERE {_TO_FINISH} "
                "ORDER BY try_at, arrived_at, path LIMIT :limit",
                {"done": done, "now": now, "limit": limit},
            )
            return [LoadedFile(*row) for row in rows]

    def finish(self, file: LoadedFile, done: str, moved_to: str = "") -> None:
        """Record that a file was tagged, or moved to a path."""
        with self._open() as database:
            if moved_to:
                database.execute("DELETE FROM files WHERE path = ? AND state = ?", [file.path, file.state])
                detail = f"to {moved_to}; {file.detail}"
                new = database.execute(
                    "INSERT INTO moved (path, size, arrived_at, detail) VALUES (?, ?, ?, ?)",
                    [file.path, file.size, file.arrived_at, detail],
                )
                database.execute("DELETE FROM moved WHERE number <= ?", [(new.lastrowid or 0) - _MOST_MOVED])
            else:
                database.execute(
                    "UPDATE files SET finished = ?, problem = '' WHERE path = ? AND state = ?",
                    [done, file.path, file.state],
                )
            database.execute("COMMIT")

    def put_off(self, file: LoadedFile, problem: str, try_at: float) -> None:
        """Record why a file was not tagged or moved, and when to try again."""
        with self._open() as database:
            database.execute(
                "UPDATE files SET problem = ?, try_at = ? WHERE path = ? AND state = ?",
                [problem, try_at, file.path, file.state],
            )
            database.execute("COMMIT")
