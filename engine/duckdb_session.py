"""A DuckDB session in the worker's process, for the Parquet files that Iceberg's manifests name.

`store_files.py` reads files in an object store.

The session matches columns by field id, so files from before a rename, an addition or a promotion have the table's
present schema. A setting limits its memory; DuckDB spills the rest to disk.
"""

import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from engine.private_files import private_folder
from engine.row_deletes import deleted_rows
from engine.store_files import StoreFiles, is_in_store
from sluice.audit.query_builder import AuditQuery
from sluice.checks.base import CheckQuery
from sluice.contracts.spark_jobs import ScanAnswer
from sluice.identifiers import name_elements
from sluice.metadata.statistics import DeleteFile, SchemaField
from sluice.sql.arrow_values import python_rows
from sluice.sql.dialect import DUCKDB
from sluice.sql.values import kind_of

_TYPES = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMPTZ",
    "string": "VARCHAR",
    "binary": "BLOB",
    "fixed": "BLOB",
}
_CONFIG = {
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,  # no variable of this process is a table
}
_DELETED = "sluice_deleted_rows"
FILE, POSITION = "sluice_file", "file_row_number"
"""Columns that DuckDB adds. Sluice chooses the first name, DuckDB the second."""
_LOCK = """
    SET TimeZone = 'UTC';
    SET preserve_insertion_order = false;
    SET parquet_metadata_cache = true;
    SET allowed_paths = getvariable('paths');
    RESET VARIABLE paths;
    SET enable_external_access = false;
    SET lock_configuration = true
"""


@dataclass(frozen=True)
class ParquetView:
    """Data files of one schema, and the name of the view that queries read."""

    name: str
    fields: Sequence[SchemaField]
    paths: Sequence[str]
    deletes: Mapping[str, Sequence[DeleteFile]] = field(default_factory=dict)
    """The delete files that apply to each data file, by the path of the data file."""
    with_position: bool = False
    """True to add the columns `FILE` and `POSITION`, which locate each row."""

    @property
    def local_paths(self) -> list[str]:
        """The paths in the form that DuckDB reads, without `file:`."""
        return [local_path(path) for path in self.paths]


class DuckDBSession:
    """A DuckDB for one audit, to be used as a context manager.

    Any thread may call `interrupt`, even after the session is closed.

    Each answer has a database of its own, which is locked before the first query. It reads only the data files of its
    views, writes no file, reaches no network, loads no extension, and changes no setting. So it refuses SQL that gets
    past the validation of `sql` and expressions.
    """

    def __init__(
        self, memory: str, scratch: Path, threads: int = 0, io: Mapping[str, str] | None = None, max_spill: str = ""
    ) -> None:
        """Prepare a session; `io` has Iceberg's properties for reading files in a store."""
        self._scratch, self._io = scratch, io or {}
        self.store_trouble: OSError | None = None
        """The error of the object store at the last answer, if the store was unavailable and did not just refuse."""
        self._config: dict[str, Any] = {**_CONFIG, "memory_limit": memory}
        if max_spill:
            self._config["max_temp_directory_size"] = max_spill
        if threads:
            self._config["threads"] = threads
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._store: StoreFiles | None = None
        self._interrupted = threading.Event()
        self._opening = threading.Lock()

    def __enter__(self) -> "DuckDBSession":
        # DuckDB spills rows to this folder, and would create it readable by everyone. Queries can read it, so no two
        # sessions share it.
        self._config["temp_directory"] = tempfile.mkdtemp(prefix="duckdb-", dir=private_folder(self._scratch))
        return self

    def __exit__(self, *_: object) -> None:
        self._close()
        shutil.rmtree(self._config["temp_directory"], ignore_errors=True)

    @property
    def interrupted(self) -> bool:
        """True if the session was interrupted. It then runs no more queries."""
        return self._interrupted.is_set()

    def interrupt(self) -> None:
        """End the running query, and refuse every later one."""
        self._interrupted.set()
        with self._opening:
            if self._connection:
                self._connection.interrupt()

    def answer(
        self,
        views: Sequence[ParquetView],
        queries: Mapping[str, CheckQuery],
        types: Mapping[str, str],
        *,
        with_other_rows: bool,
        sample_rows: int,
        disjoint_views: Mapping[str, Sequence[ParquetView]] | None = None,
    ) -> dict[str, ScanAnswer]:
        """Answer check queries over the rows of data files.

        Raises:
            duckdb.Error: DuckDB cannot run a query. Spark decides whether the check is at fault.
        """
        split = disjoint_views or {}
        every = [*views, *(view for each in split.values() for view in each)]
        try:
            connection = self._open([path for view in every for path in view.local_paths])
            _check_field_ids(connection, every)
            self._register_deleted_rows(connection, every)
            for view in every:
                connection.execute(f"CREATE OR REPLACE TEMP VIEW {view.name} AS {_select(view)}")
            names = {key: [view.name for view in each] for key, each in split.items()}
            run = partial(self._run, connection)
            return AuditQuery(run, DUCKDB, types, queries, with_other_rows, sample_rows, names).answers()
        except duckdb.Error:
            self.store_trouble = self._store.trouble if self._store else None
            raise
        finally:
            self._close()

    @contextmanager
    def tables(self, files: Sequence[ParquetView], rows: Mapping[str, pa.Table]) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a database with tables of data files and of rows in memory, each named `namespace.table`."""
        try:
            connection = self._open([path for view in files for path in view.local_paths])
            _check_field_ids(connection, files)
            self._register_deleted_rows(connection, files)
            for view in files:
                connection.execute(f"CREATE VIEW {_created(connection, view.name)} AS {_select(view)}")
            for number, (name, table) in enumerate(rows.items()):
                connection.register(f"sluice_rows_{number}", table)
                connection.execute(f"CREATE VIEW {_created(connection, name)} AS FROM sluice_rows_{number}")
            yield connection
        except duckdb.Error:
            self.store_trouble = self._store.trouble if self._store else None
            raise
        finally:
            self._close()

    def _open(self, paths: Sequence[str]) -> duckdb.DuckDBPyConnection:
        """Return a new database that may read only these files."""
        self._raise_if_interrupted()
        connection = duckdb.connect(":memory:", config=self._config)
        with self._opening:
            self._connection = connection
        in_store = [path for path in paths if is_in_store(path)]
        self._store = StoreFiles(self._io, in_store) if in_store else None
        if self._store:
            connection.register_filesystem(self._store)
        # A variable and not SQL text, since DuckDB needs seconds to parse a list of 100,000 paths.
        connection.execute("SET VARIABLE paths = ?", [[*dict.fromkeys(paths)]])
        connection.execute(_LOCK)
        return connection

    def _register_deleted_rows(self, connection: duckdb.DuckDBPyConnection, views: Sequence[ParquetView]) -> None:
        """Register a table of the rows that delete files mark as deleted; the views exclude them."""
        deletes = {path: files for view in views for path, files in view.deletes.items()}
        if not any(deletes.values()):
            return
        try:
            rows = deleted_rows(self._io, deletes, {path: local_path(path) for path in deletes})
        except OSError as error:
            if self._store:
                self._store.note(error)
            raise duckdb.IOException(f"a delete file cannot be read: {error}") from error
        connection.register(_DELETED, rows)

    def _close(self) -> None:
        with self._opening:
            if self._connection:
                self._connection.close()
            self._connection = None

    def _raise_if_interrupted(self) -> None:
        if self.interrupted:
            raise duckdb.InterruptException("interrupted")

    def select(self, connection: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
        """Return the rows of one SELECT.

        Raises:
            duckdb.Error: DuckDB cannot run it, or it is another statement.
        """
        self._raise_if_interrupted()
        statements = connection.extract_statements(sql)
        if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
            raise duckdb.PermissionException("a check is one SELECT: DuckDB runs nothing else")
        return connection.sql(statements[0]).to_arrow_table()

    def _run(self, connection: duckdb.DuckDBPyConnection, sql: str) -> list[dict[str, Any]]:
        return python_rows(self.select(connection, sql))


def _check_field_ids(connection: duckdb.DuckDBPyConnection, views: Sequence[ParquetView]) -> None:
    """Check that each data file has field ids. DuckDB would read every column of a file without them as NULL.

    DuckDB caches the footers, which the queries need too.

    Raises:
        duckdb.InvalidInputException: a file has no field ids. Iceberg matches its columns by position.
    """
    paths = [*dict.fromkeys(path for view in views for path in view.local_paths)]
    if not paths:
        return
    without = "SELECT file_name FROM parquet_schema(?) GROUP BY 1 HAVING max(field_id) IS NULL LIMIT 1"
    if first := connection.execute(without, [paths]).fetchone():
        raise duckdb.InvalidInputException(f"{first[0]} has no field ids")


def _created(connection: duckdb.DuckDBPyConnection, table: str) -> str:
    """Create the namespace of a table, if the table has one; return the table's name for SQL."""
    *namespace, name = name_elements(table)
    if not namespace:
        return DUCKDB.column(name)
    schema = DUCKDB.column(".".join(namespace))
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    return f"{schema}.{DUCKDB.column(name)}"


def _select(view: ParquetView) -> str:
    listed = ", ".join(DUCKDB.column(each.name) for each in view.fields)
    located = f"{FILE}, {POSITION}" if view.with_position else ""
    listed = ", ".join(filter(None, [listed, located]))
    if not view.paths:
        nothing = [f"NULL::{_type(each.type)} AS {DUCKDB.column(each.name)}" for each in view.fields]
        nothing += [f"NULL::VARCHAR AS {FILE}", f"NULL::BIGINT AS {POSITION}"] if view.with_position else []
        return f"SELECT {', '.join(nothing)} WHERE FALSE"
    schema = ", ".join(
        f"{each.id}: {{name: {DUCKDB.text(each.name)}, type: '{_type(each.type)}', default_value: NULL}}"
        for each in view.fields
    )
    positions = f", filename = '{FILE}', {POSITION} = true"

    def read(paths: Sequence[str], more: str) -> str:
        names = ", ".join(DUCKDB.text(local_path(path)) for path in paths)
        return f"read_parquet([{names}], schema = MAP {{{schema}}}{more})"

    whole = [path for path in view.paths if not view.deletes.get(path)]
    partly = [path for path in view.paths if view.deletes.get(path)]
    parts = [f"SELECT {listed} FROM {read(whole, positions if located else '')}"] if whole else []
    if partly:
        is_deleted = f"deleted.file = rows.{FILE} AND deleted.position = rows.{POSITION}"
        rows = read(partly, positions)
        parts.append(f"SELECT {listed} FROM {rows} AS rows ANTI JOIN {_DELETED} AS deleted ON {is_deleted}")
    return " UNION ALL ".join(parts)


def local_path(path: str) -> str:
    """Return the path of a file in the form that DuckDB reads, without `file:`."""
    return path.removeprefix("file://").removeprefix("file:")


def _type(kind: str) -> str:
    return kind.upper().replace(" ", "") if kind_of(kind) == "decimal" else _TYPES[kind_of(kind)]
