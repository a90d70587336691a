"""DuckDB in the worker's process, straight over the data files that Iceberg's manifests name.

Columns are found by field id, so files from before a rename, an addition or a promotion are read as the
table's present schema says. Memory is bounded by a setting; what does not fit spills to disk.
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


_TURN = threading.Lock()
"""Scans take turns: each has threads for every processor, and the memory that the settings allow."""
_LOOK = 0.5


@dataclass(frozen=True)
class FileView:
    """Data files of one schema under the name by which questions find their rows."""

    name: str
    fields: Sequence[SchemaField]
    paths: Sequence[str]


class DuckDBScan:
    """A DuckDB of one audit. Use it as a context; `interrupt` ends what it is doing, from any thread."""

    def __init__(self, memory: str, scratch: Path, threads: int = 0) -> None:
        config: dict[str, Any] = {"memory_limit": memory, "temp_directory": str(scratch)}
        config["autoinstall_known_extensions"] = False  # nothing is fetched while an audit runs
        if threads:
            config["threads"] = threads
        self._connection = duckdb.connect(":memory:", config=config)
        self._connection.execute("SET TimeZone = 'UTC'; SET preserve_insertion_order = false")
        self._interrupted = threading.Event()

    def __enter__(self) -> "DuckDBScan":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def take_turn(self) -> bool:
        """Wait until no other scan of this process runs; return whether that came before an interrupt."""
        while not self._interrupted.is_set():
            if _TURN.acquire(timeout=_LOOK):
                return True
        return False

    def end_turn(self) -> None:
        """Let the next scan run."""
        _TURN.release()

    def interrupt(self) -> None:
        """End the query that runs now, and let no other begin."""
        self._interrupted.set()
        self._connection.interrupt()

    def ask(
        self,
        views: Sequence[FileView],
        questions: Mapping[str, CheckQuery],
        types: Mapping[str, str],
        *,
        with_rest: bool,
        sample_rows: int,
        apart: Mapping[str, Sequence[FileView]] | None = None,
    ) -> dict[str, ScanAnswer]:
        """Answer questions over the rows of data files.

        Raises:
            duckdb.Error: DuckDB cannot answer; what it would mean is for Spark to say.
        """
        parts = apart or {}
        for view in (*views, *(view for each in parts.values() for view in each)):
            self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {view.name} AS {_select(view)}")
        names = {key: [view.name for view in each] for key, each in parts.items()}
        return AuditQuery(self._run, DUCKDB, types, questions, with_rest, sample_rows, names).answers()

    def _run(self, sql: str) -> list[dict[str, Any]]:
        if self._interrupted.is_set():
            raise duckdb.InterruptException("interrupted")
        found: list[dict[str, Any]] = self._connection.sql(sql).to_arrow_table().to_pylist()
        return found


def _select(view: FileView) -> str:
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
