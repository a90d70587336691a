"""What a worker remembers of a landing zone between two listings, in SQLite: a cache, which may be deleted.

Which files are loaded is known by main's history, and which are held by the zone's batches. This memory saves the
reading of files that did not change, and knows since when they have not. Without it, files settle a second time.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from lakehouse.source_files.arriving import ArrivingFile
from sluice.arrivals.batching import WaitingFile, folder_of
from sluice.contracts.arrivals import ArrivalEntry, FileStatus

_VERSION = 3
_WAIT = 30.0
_AT_ONCE = 400
"""So many files one statement names: SQLite before 3.32 takes 999 parameters."""
_SCHEMA = """
CREATE TABLE files (
    path TEXT PRIMARY KEY, folder TEXT NOT NULL, size INTEGER NOT NULL, state TEXT NOT NULL,
    arrived_at REAL NOT NULL, changed_at REAL NOT NULL, status TEXT NOT NULL, detail TEXT NOT NULL DEFAULT '',
    listing INTEGER NOT NULL, identity TEXT NOT NULL DEFAULT '', finished TEXT NOT NULL DEFAULT '',
    problem TEXT NOT NULL DEFAULT '', try_at REAL NOT NULL DEFAULT 0, is_judged INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX files_by_status ON files (status, folder);
CREATE INDEX identified_files ON files (try_at) WHERE identity != '';
CREATE TABLE moved (
    number INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, size INTEGER NOT NULL, arrived_at REAL NOT NULL,
    detail TEXT NOT NULL
);
CREATE TABLE listings (number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL);
CREATE TABLE manifests (folder TEXT PRIMARY KEY, at REAL NOT NULL);
CREATE TABLE rules (digest TEXT NOT NULL);
"""
_TABLES = ("files", "listings", "moved", "manifests", "rules")
_DROP = " ".join(f"DROP TABLE IF EXISTS {name};" for name in _TABLES)
_RECORD = """
INSERT INTO files (path, folder, size, state, arrived_at, changed_at, status, detail, listing)
VALUES (:path, :folder, :size, :state, :now, :now, :status, :detail, :listing)
ON CONFLICT (path) DO UPDATE SET
    listing = :listing, changed_at = :now, status = :status, detail = :detail, size = :size, state = :state,
    identity = '', finished = '', problem = '', try_at = 0, is_judged = 0,
    arrived_at = CASE WHEN status = 'waiting' THEN arrived_at ELSE :now END
    WHERE listing <= :listing AND state != :state
"""
_TO_FINISH = "identity != '' AND try_at <= :now AND finished != :done AND status IN ('loaded', 'ignored')"
_MOST_MOVED = 10_000
"""So many moved files are remembered: `files` has all that were loaded."""


@dataclass(frozen=True)
class LoadedFile:
    """A file that main held when it was last asked, and that is still in the zone."""

    path: str
    size: int
    state: str
    identity: str
    arrived_at: float
    detail: str


@dataclass(frozen=True)
class RememberedFile:
    """A file of the zone, or one that was moved out of it."""

    path: str
    size: int
    arrived_at: float
    status: FileStatus
    detail: str
    after: str
    changed_at: float
    identity: str

    def entry(self, detail: str) -> ArrivalEntry:
        """Return what people see of it."""
        fields = {"path": self.path, "size": self.size, "arrived_at": self.arrived_at, "status": self.status}
        return ArrivalEntry.model_validate({**fields, "detail": detail, "after": self.after})


def _row(file: ArrivingFile, now: float, listing: int | None) -> dict[str, Any]:
    status = "ignored" if file.ignored else "waiting"
    return {
        **{"path": file.path, "folder": folder_of(file.path), "size": file.size, "state": file.state},
        "detail": file.ignored,
        **{"now": now, "status": status, "listing": listing},
    }


def _states(database: sqlite3.Connection, paths: Sequence[str]) -> dict[str, str]:
    marks = ", ".join("?" * len(paths))
    return dict(database.execute(f"SELECT path, state FROM files WHERE path IN ({marks})", list(paths)).fetchall())


class ZoneMemory:
    """The memory of one landing zone, in one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def record_listing(self, files: Iterable[ArrivingFile], now: float) -> None:
        """Record what is there now; what is not listed any more is forgotten.

        Only files whose state changed are written, so that a look at many known files costs little. What a later
        listing wrote stays as it is.
        """
        with self._open() as database:
            listing = database.execute("INSERT INTO listings (at) VALUES (?)", [now]).lastrowid
            database.execute("COMMIT")
        listed, paths = iter(files), set[int]()
        while some := list(islice(listed, _AT_ONCE)):  # no transaction is open while a store is waited for
            paths.update(hash(file.path) for file in some)
            with self._open() as database:
                known = _states(database, [file.path for file in some])
                changed = [_row(file, now, listing) for file in some if known.get(file.path) != file.state]
                database.executemany(_RECORD, changed)
                database.execute("COMMIT")
        with self._open() as database:
            known_paths = database.execute("SELECT path FROM files WHERE listing < ?", [listing])
            missing = [row for row in known_paths if hash(row[0]) not in paths]
            database.executemany("DELETE FROM files WHERE path = ?", missing)
            database.execute("DELETE FROM listings WHERE number < ?", [listing])
            database.execute("COMMIT")

    def waiting(self, limit: int, *, with_manifest: bool = False) -> list[WaitingFile]:
        """Return the files that wait, in the order of arrival: all, or those whose folder has its manifest."""
        only = "AND folder IN (SELECT folder FROM manifests)" if with_manifest else ""
        with self._open() as database:
            rows = database.execute(
                f"SELECT path, size, arrived_at, changed_at FROM files WHERE status = 'waiting' {only} "
                "ORDER BY arrived_at, path LIMIT ?",
                [limit],
            )
            return [WaitingFile(*row) for row in rows]

    def waiting_folders(self) -> list[str]:
        """Return the folders in which files wait."""
        with self._open() as database:
            return [
                folder for (folder,) in database.execute("SELECT DISTINCT folder FROM files WHERE status = 'waiting'")
            ]

    def record_manifests(self, folders: Mapping[str, bool], now: float) -> dict[str, float]:
        """Record which of these folders have their manifest now; return since when those that have it had it."""
        with self._open() as database:
            missing = [[folder] for folder, is_there in folders.items() if not is_there]
            database.executemany("DELETE FROM manifests WHERE folder = ?", missing)
            present = [[folder, now] for folder, is_there in folders.items() if is_there]
            database.executemany("INSERT OR IGNORE INTO manifests (folder, at) VALUES (?, ?)", present)
            database.execute("COMMIT")
            return dict(database.execute("SELECT folder, at FROM manifests").fetchall())

    def apply_rules(self, digest: str) -> None:
        """Let files wait again that were judged under other rules: the pipeline was changed since."""
        with self._open() as database:
            if database.execute("SELECT digest FROM rules").fetchall() == [(digest,)]:
                return
            database.execute("UPDATE files SET status = 'waiting', detail = '', is_judged = 0 WHERE is_judged")
            database.execute("DELETE FROM rules")
            database.execute("INSERT INTO rules (digest) VALUES (?)", [digest])
            database.execute("COMMIT")

    def mark(
        self, path: str, changed_at: float, status: FileStatus, detail: str, identity: str = "", *, judged: bool = False
    ) -> None:
        """Set what became of a file, unless it changed since it was listed.

        Args:
            identity: what it holds, for a file that is to be tagged or moved once main has that.
            judged: whether that follows from the rules of the pipeline, so that other rules may decide otherwise.
        """
        with self._open() as database:
            database.execute(
                "UPDATE files SET status = ?, detail = ?, identity = ?, is_judged = ? "
                "WHERE path = ? AND changed_at = ?",
                [status, detail, identity, judged, path, changed_at],
            )
            database.execute("COMMIT")

    def count_to_finish(self, done: str, now: float) -> int:
        """Return how many files are to be looked at now: `done` is what was done with others, `tagged` or `moved`."""
        with self._open() as database:
            values = {"done": done, "now": now}
            return int(database.execute(f"SELECT count(*) FROM files WHERE {_TO_FINISH}", values).fetchone()[0])

    def count_put_off(self) -> int:
        """Return how many files could not be tagged or moved so far."""
        with self._open() as database:
            counted = database.execute("SELECT count(*) FROM files WHERE identity != '' AND problem != ''")
            return int(counted.fetchone()[0])

    def to_finish(self, done: str, now: float, limit: int) -> list[LoadedFile]:
        """Return files that are to be tagged or moved now, those first that were tried longest ago."""
        with self._open() as database:
            rows = database.execute(
                f"SELECT path, size, state, identity, arrived_at, detail FROM files WHERE {_TO_FINISH} "
                "ORDER BY try_at, arrived_at, path LIMIT :limit",
                {"done": done, "now": now, "limit": limit},
            )
            return [LoadedFile(*row) for row in rows]

    def finish(self, file: LoadedFile, done: str, moved_to: str = "") -> None:
        """Remember that a file was tagged, or moved to a path."""
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
        """Remember why a file was not tagged or moved, and when to try again."""
        with self._open() as database:
            database.execute(
                "UPDATE files SET problem = ?, try_at = ? WHERE path = ? AND state = ?",
                [problem, try_at, file.path, file.state],
            )
            database.execute("COMMIT")

    def release_batches(self, held: Sequence[str]) -> None:
        """Let the files of batches that the zone no longer holds wait again: main is asked what it has of them."""
        known = set(held)
        with self._open() as database:
            batches = database.execute("SELECT DISTINCT detail FROM files WHERE status = 'in a batch'").fetchall()
            database.executemany(
                "UPDATE files SET status = 'waiting', detail = '' WHERE status = 'in a batch' AND detail = ?",
                [row for row in batches if row[0] not in known],
            )
            database.execute("COMMIT")

    def counts(self) -> dict[str, int]:
        """Return how many files there are by status."""
        with self._open() as database:
            counts = dict(database.execute("SELECT status, count(*) FROM files GROUP BY status").fetchall())
            (moved,) = database.execute("SELECT count(*) FROM moved").fetchone()
            return counts | ({"moved": moved} if moved else {})

    def files(self, status: FileStatus | None, part: str, limit: int) -> list[RememberedFile]:
        """Return files whose path has a part, the latest first; of one status, or of any."""
        with self._open() as database:
            rows = database.execute(
                "SELECT path, size, arrived_at, status, detail, coalesce(nullif(problem, ''), finished), "
                "changed_at, identity FROM files WHERE :status IN ('', status) AND instr(path, :part) "
                "UNION ALL SELECT path, size, arrived_at, 'moved', detail, '', 0, '' FROM moved "
                "WHERE :status IN ('', 'moved') AND instr(path, :part) ORDER BY 3 DESC, 1 LIMIT :limit",
                {"status": status or "", "part": part, "limit": limit},
            )
            return [RememberedFile(*row) for row in rows]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the file in a transaction; it is made again if it is damaged or of another version."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with closing(self._connect()) as database:
            database.execute("BEGIN IMMEDIATE")
            yield database

    def _connect(self) -> sqlite3.Connection:
        try:
            return self._prepare()
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:  # it is no database any more
            self._path.unlink(missing_ok=True)
            return self._prepare()

    def _prepare(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, timeout=_WAIT, isolation_level=None)
        if database.execute("PRAGMA user_version").fetchone() != (_VERSION,):
            database.executescript(f"{_DROP} {_SCHEMA}")
            database.execute(f"PRAGMA user_version = {_VERSION}")
        return database
