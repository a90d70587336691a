"""A DuckDB session in the worker's process that reads the Parquet files which Iceberg's manifests name.

Columns are read by field id, so files from before a rename, an addition or a promotion are read with the table's
present schema. Memory is limited by a setting; what exceeds it spills to disk.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from sluice.audit.query_builder import AuditQuery
from sluice.audit.statistics import SchemaField
from sluice.checks.base import CheckQuery
from sluice.contracts.spark_jobs import ScanAnswer
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


@dataclass(frozen=True)
class ParquetView:
    """Data files of one schema under the name by which queries read their rows."""

    name: str
    fields: Sequence[SchemaField]
    paths: Sequence[str]


class DuckDBSession:
    """A DuckDB for one audit. Use it as a context manager; `interrupt` works from any thread, and once it is closed."""

    def __init__(self, memory: str, scratch: Path, threads: int = 0) -> None:
        config: dict[str, Any] = {"memory_limit": memory, "temp_directory": str(scratch)}
        config["autoinstall_known_extensions"] = False  # an audit downloads nothing
        if threads:
            config["threads"] = threads
        self._connection = duckdb.connect(":memory:", config=config)
        self._connection.execute("SET TimeZone = 'UTC'; SET preserve_insertion_order = false")
        self._interrupted = threading.Event()
        self._closing = threading.Lock()
        self._closed = False

    def __enter__(self) -> "DuckDBSession":
        return self

    def __exit__(self, *_: object) -> None:
        with self._closing:
            self._closed = True
            self._connection.close()

    @property
    def interrupted(self) -> bool:
        """Whether the session was interrupted; it runs no query any more."""
        return self._interrupted.is_set()

    def interrupt(self) -> None:
        """End the running query, and refuse every later one."""
        self._interrupted.set()
        with self._closing:
            if not self._closed:
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
            duckdb.Error: DuckDB cannot run a query. Spark decides whether that is an error of the check.
        """
        self._raise_if_interrupted()
        split = disjoint_views or {}
        for view in (*views, *(view for each in split.values() for view in each)):
            self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {view.name} AS {_select(view)}")
        names = {key: [view.name for view in each] for key, each in split.items()}
        return AuditQuery(self._run, DUCKDB, types, queries, with_other_rows, sample_rows, names).answers()

    def _raise_if_interrupted(self) -> None:
        if self.interrupted:
            raise duckdb.InterruptException("interrupted")

    def _run(self, sql: str) -> list[dict[str, Any]]:
        self._raise_if_interrupted()
        rows: list[dict[str, Any]] = self._connection.sql(sql).to_arrow_table().to_pylist()
        return rows


def _select(view: ParquetView) -> str:
    listed = ", ".join(DUCKDB.column(each.name) for each in view.fields)
    if not view.paths:
        nothing = ", ".join(f"NULL::{_type(each.type)} AS {DUCKDB.column(each.name)}" for each in view.fields)
        return f"SELECT {nothing} WHERE FALSE"
    paths = ", ".join(DUCKDB.text(path.removeprefix("file://").removeprefix("file:")) for path in view.paths)
    schema = ", ".join(
        f"{each.id}: {{name: {DUCKDB.text(each.name)}, type: '{_type(each.type)}', default_value: NULL}}"
        for each in view.fields
    )
    return f"SELECT {listed} FROM read_parquet([{paths}], schema = MAP {{{schema}}})"


def _type(kind: str) -> str:
    return kind.upper().replace(" ", "") if kind_of(kind) == "decimal" else _TYPES[kind_of(kind)]
