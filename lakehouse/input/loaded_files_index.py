"""SQLite index of loaded files, filled from main's commits. It is a cache and may be deleted."""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from lakehouse.input.loaded_files_tables import (
    FIND,
    FIND_INPUTS,
    FIND_SCOPES,
    LOAD_COLUMNS,
    REPLACEABLE,
    REPLACED,
    REPLACED_IN_SCOPE,
    TABLES,
    VERSION,
    IndexedCommit,
    add_commit,
    add_manifest,
    create_tables,
    loaded_file,
    read_later,
)
from sluice.contracts.selected_input import ManifestRef
from sluice.input.held_files import LoadedFile
from sluice.input.manifest import InputManifest
from sluice.input.publications import are_others
from sluice.pipeline.scope import LoadScope

_WAIT = 30.0
"""Maximum wait for another process that writes, in seconds."""
_AT_ONCE = 500
"""Maximum number of values bound to one statement."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class FileLoad:
    """A file in the index, with the run that loaded it."""

    file: LoadedFile
    size: int
    pipeline: str
    in_effect: bool
    """False if the run was rolled back."""

    @property
    def identity(self) -> str:
        """Identity of the file's content."""
        return self.file.identity


class IndexMoved(Exception):
    """Raised when another process moved the index meanwhile. The caller repeats its query."""


class LoadedFilesIndex:
    """One index in one file. Every method opens the file itself, so threads and processes may share it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def head(self) -> str:
        """Return the hash of main that the index has reached; empty for an empty index."""
        return self._use(_head)

    def knows(self, hash: str) -> bool:
        """Return True if the indexed history contains a commit."""
        select = "SELECT 1 FROM commits WHERE hash = ?"
        return self._use(lambda database: database.execute(select, [hash]).fetchone() is not None)

    def append(self, after: str, commits: Sequence[IndexedCommit]) -> None:
        """Add the commits of main that follow the hash `after`, oldest first.

        Raises:
            IndexMoved: the index is no longer at that hash.
        """

        def add(database: sqlite3.Connection) -> None:
            database.execute("BEGIN IMMEDIATE")
            if _head(database) != after:
                raise IndexMoved
            for commit in commits:
                add_commit(database, commit)
            database.execute("COMMIT")

        self._use(add)

    def clear(self) -> None:
        """Delete all rows: the indexed commits are not the history of main."""

        def delete(database: sqlite3.Connection) -> None:
            database.execute("BEGIN IMMEDIATE")
            for table in TABLES:
                database.execute(f"DELETE FROM {table}")
            database.execute("COMMIT")

        self._use(delete)

    def add_manifest(self, hash: str, manifest: InputManifest) -> None:
        """Add the manifest of a run that could not be read before."""

        def add(database: sqlite3.Connection) -> None:
            database.execute("BEGIN IMMEDIATE")
            for (seq,) in database.execute("SELECT seq FROM runs WHERE hash = ?", [hash]).fetchall():
                add_manifest(database, seq, manifest)
            database.execute("COMMIT")

        self._use(add)

    def find_loads(
        self, at: str, table: str, identities: Collection[str], paths: Collection[str] = ()
    ) -> list[LoadedFile]:
        """Return the loads in effect of these files into a table, oldest first.

        Args:
            at: the hash of main that the index has reached.
            table: the table.
            identities: identities of files.
            paths: paths of further files, also of those that runs left out as known content.

        Raises:
            IndexMoved: the index does not contain that hash.
        """

        def read(database: sqlite3.Connection) -> list[LoadedFile]:
            database.execute("BEGIN")
            _require(database, at)
            rows: set[tuple[object, ...]] = set()
            wanted = (("files", "identity", identities), ("files", "path", paths), ("left_out", "path", paths))
            for source, column, values in wanted:
                for some in _chunks(list(values)):
                    select = FIND.format(source, column, ", ".join("?" * len(some)))
                    rows.update(database.execute(select, [table, *some]))
            return [loaded_file(fields) for _, *fields in sorted(rows, key=lambda row: (row[0], row[2]))]

        return self._use(read)

    def find_later(self, loads: Sequence[tuple[LoadedFile, LoadScope]]) -> list[LoadedFile | None]:
        """Return, for each load, the first later load in effect of other content into its table, in the given scope."""
        return self._use(lambda database: [read_later(database, load, scope) for load, scope in loads])

    def find_previous(self, commit: str) -> str:
        """Return the hash of main before a commit; empty if the commit is the first or unknown."""
        select = "SELECT hash FROM commits WHERE seq = (SELECT seq FROM commits WHERE hash = ?) - 1"
        row = self._use(lambda database: database.execute(select, [commit]).fetchone())
        return str(row[0]) if row else ""

    def find_inputs(
        self, at: str, pipeline: str, digests: Sequence[str], tables: Collection[str] = ()
    ) -> list[LoadedFile]:
        """Return the latest run in effect of a pipeline that published each of some inputs, with the input's scope.

        Args:
            tables: the present tables of the pipeline. A run that loaded files into other tables alone does not count.
        """

        def read(database: sqlite3.Connection) -> list[LoadedFile]:
            database.execute("BEGIN")
            _require(database, at)
            latest: dict[str, LoadedFile] = {}
            for some in _chunks(list(digests)):
                rows = database.execute(FIND_INPUTS.format(", ".join("?" * len(some))), [pipeline, *some])
                for loaded, *fields in rows:
                    if not are_others(json.loads(loaded), tables):
                        load = loaded_file(fields)
                        latest.setdefault(load.identity, load)
            return list(latest.values())

        return self._use(read)

    def find_scopes(self, at: str, pipeline: str, tables: Collection[str]) -> list[LoadedFile]:
        """Return the runs in effect of a pipeline that loaded a partition of the content, oldest first.

        Args:
            tables: the present tables of the pipeline. A run that loaded files into other tables alone does not count.
        """

        def read(database: sqlite3.Connection) -> list[LoadedFile]:
            database.execute("BEGIN")
            _require(database, at)
            rows = database.execute(FIND_SCOPES, [pipeline])
            return [loaded_file(fields) for loaded, *fields in rows if not are_others(json.loads(loaded), tables)]

        return self._use(read)

    def is_replaced(self, load: LoadedFile, pipeline: str, *, same_scope: bool) -> bool:
        """Return True if a later run in effect of a pipeline loaded files into the tables of a run.

        Args:
            load: the run, with the scope of its input.
            same_scope: True if only files of this partition, or scheduled time, count.
        """
        select = REPLACED_IN_SCOPE if same_scope else REPLACED
        given = {"commit": load.commit, "pipeline": pipeline}
        given |= {"path_scope": load.scope.path, "content_scope": load.scope.content}
        return self._use(lambda database: database.execute(select, given).fetchone() is not None)

    def replaceable_tables(self, commit: str) -> list[str]:
        """Return the tables of a run in which a later load may have replaced rows.

        Args:
            commit: the commit that published the run.
        """
        return self._use(lambda database: [name for (name,) in database.execute(REPLACEABLE, {"commit": commit})])

    def problems(self, tables: Collection[str]) -> list[tuple[str, ManifestRef, str]]:
        """Return commit, manifest and problem of each run in effect that loaded unknown files into these tables.

        Without tables, runs into any table are returned.
        """

        def read(database: sqlite3.Connection) -> list[tuple[str, ManifestRef, str]]:
            rows = database.execute(
                "SELECT hash, location, manifest, problem, tables FROM runs WHERE problem != '' AND in_effect"
            ).fetchall()
            return [
                (hash, ManifestRef(location=location, digest=digest), problem)
                for hash, location, digest, problem, named in rows
                if not tables or not json.loads(named) or {*json.loads(named)} & {*tables}
            ]

        return self._use(read)

    def list_files(self, condition: str, values: Sequence[object], limit: int) -> tuple[list[FileLoad], int]:
        """Return the loads that match a condition in SQL, newest first, and their total number."""

        def read(database: sqlite3.Connection) -> tuple[list[FileLoad], int]:
            where = f"FROM files f JOIN runs r ON r.seq = f.seq WHERE {condition or '1'}"
            (total,) = database.execute(f"SELECT count(*) {where}", values).fetchone()
            rows = database.execute(
                f"SELECT f.size, r.pipeline, r.in_effect, {LOAD_COLUMNS} {where} ORDER BY f.seq DESC, f.path LIMIT ?",
                [*values, limit],
            )
            loads = [
                FileLoad(loaded_file(fields), size, pipeline, bool(in_effect))
                for size, pipeline, in_effect, *fields in rows
            ]
            return loads, int(total)

        return self._use(read)

    def _use(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run a function on the database. A damaged database is deleted, and then rebuilt from main."""
        try:
            return self._run(work)
        except (sqlite3.OperationalError, sqlite3.IntegrityError) as error:
            if "locked" in str(error) or "busy" in str(error):
                raise
        except sqlite3.DatabaseError:
            pass
        for ending in ("", "-journal", "-wal", "-shm"):
            self._path.with_name(self._path.name + ending).unlink(missing_ok=True)
        return self._run(work)

    def _run(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        with self._open() as database:
            return work(database)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._path, timeout=_WAIT, isolation_level=None)) as database:
            if database.execute("PRAGMA user_version").fetchone() != (VERSION,):
                create_tables(database)
            yield database


def _head(database: sqlite3.Connection) -> str:
    row = database.execute("SELECT hash FROM commits ORDER BY seq DESC LIMIT 1").fetchone()
    return str(row[0]) if row else ""


def _require(database: sqlite3.Connection, hash: str) -> None:
    """Verify that the index contains a hash of main. A main without commits has an empty hash.

    Raises:
        IndexMoved: the index does not contain it.
    """
    if hash and database.execute("SELECT seq FROM commits WHERE hash = ?", [hash]).fetchone() is None:
        raise IndexMoved


def _chunks(values: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(values), _AT_ONCE):
        yield values[start : start + _AT_ONCE]
