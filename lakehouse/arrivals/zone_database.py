"""SQLite file with a worker's memory of a landing zone. It is a cache and may be deleted.

Main's history records the loaded files, and the zone's batches record their own. The memory saves reading unchanged
files again, and records since when they are unchanged. Without it, files settle a second time, and those that wait
are as old as the next listing.
"""

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sluice.errors import ServiceUnavailable

_VERSION = 5
_WAIT = 30.0
_SCHEMA = """
CREATE TABLE files (
    path TEXT PRIMARY KEY, folder TEXT NOT NULL, size INTEGER NOT NULL, state TEXT NOT NULL,
    arrived_at REAL NOT NULL, changed_at REAL NOT NULL, listed_at REAL NOT NULL, written_at REAL NOT NULL,
    status TEXT NOT NULL, detail TEXT NOT NULL DEFAULT '',
    listing INTEGER NOT NULL, identity TEXT NOT NULL DEFAULT '', finished TEXT NOT NULL DEFAULT '',
    problem TEXT NOT NULL DEFAULT '', try_at REAL NOT NULL DEFAULT 0, is_judged INTEGER NOT NULL DEFAULT 0,
    report INTEGER NOT NULL DEFAULT 0, reported TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX files_by_listing ON files (listing);
CREATE INDEX files_by_status ON files (status, folder);
CREATE INDEX identified_files ON files (try_at) WHERE identity != '';
CREATE INDEX files_to_report ON files (report) WHERE report > 0;
CREATE TABLE moved (
    number INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, size INTEGER NOT NULL, arrived_at REAL NOT NULL,
    detail TEXT NOT NULL
);
CREATE TABLE copies (
    number INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, identity TEXT NOT NULL, UNIQUE (path, identity)
);
CREATE TABLE listings (number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL);
CREATE TABLE manifests (folder TEXT PRIMARY KEY, at REAL NOT NULL);
CREATE TABLE details (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
_TABLES = ("files", "listings", "moved", "copies", "manifests", "details")


class ZoneDatabase:
    """Memory of one landing zone, in one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the file in a transaction. A damaged file, or one of another version, is created again.

        Raises:
            ServiceUnavailable: a page of it was damaged. A second try begins without the file.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with closing(self._begin()) as database:
                yield database
        except sqlite3.DatabaseError as error:
            if not self._remove_if_damaged(error):
                raise
            raise ServiceUnavailable(f"{self._path} was damaged; Sluice rebuilds it: {error}") from error

    def _begin(self) -> sqlite3.Connection:
        try:
            return _connect(self._path)
        except sqlite3.DatabaseError as error:
            if not self._remove_if_damaged(error):
                raise
            return _connect(self._path)

    def _remove_if_damaged(self, error: sqlite3.DatabaseError) -> bool:
        """Remove the file if it is damaged or not a database; return True if it was removed."""
        if isinstance(error, (sqlite3.OperationalError, sqlite3.IntegrityError)):
            return False
        for ending in ("", "-journal", "-wal", "-shm"):
            self._path.with_name(self._path.name + ending).unlink(missing_ok=True)
        return True


def _connect(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=_WAIT, isolation_level=None)
    try:
        database.execute("BEGIN IMMEDIATE")
        if database.execute("PRAGMA user_version").fetchone() != (_VERSION,):
            _create(database)
    except sqlite3.Error:
        database.close()
        raise
    return database


def _create(database: sqlite3.Connection) -> None:
    for name in _TABLES:
        database.execute(f"DROP TABLE IF EXISTS {name}")
    for statement in _SCHEMA.split(";"):
        database.execute(statement)
    database.execute("INSERT INTO details (name, value) VALUES ('id', ?)", [uuid.uuid4().hex[:12]])
    database.execute(f"PRAGMA user_version = {_VERSION}")
