"""The audit results table: verdicts of all ended runs, as an Iceberg table on an orphan branch.

The branch is never merged into main: only audited merges change main (ADR 10).
"""

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import pyarrow as pa
from pyiceberg.expressions import EqualTo
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import StaticTable, Table, Transaction
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import (
    IntegerType,
    ListType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestamptzType,
)

from lakehouse.catalog import BranchCatalog, TableVersion
from lakehouse.iceberg.commit import BranchCommitCatalog, next_metadata_location, table_commit
from lakehouse.iceberg.table_state import load_table
from sluice.errors import ServiceUnavailable
from sluice.publishing.commit_properties import RUN_ID

BRANCH = "sluice/audits"
TABLE = "sluice.audit_results"
_TRIES = 20
_SNAPSHOTS = 20
"""Number of newest snapshots that stay when older ones expire. Rows of expired snapshots stay in the table.

Snapshots expire once the table has more than twice this number. PyIceberg copies a table's metadata many times for each
append, so a long history would slow down every run.
"""

_TEXTS = ("run_id", "workflow_id", "pipeline", "outcome", "reason", "audited_hash", "report")
_CHECK_TEXTS = ("table_name", "check_name", "scope", "verdict", "observed", "expected", "answered_by", "message")
_NUMBERS = ("failed_rows", "files", "bytes")
_LATER: tuple[tuple[str, PrimitiveType], ...] = (
    ("waived_by", StringType()),
    ("waived_until", TimestamptzType()),
    ("waiver_reason", StringType()),
    ("waiver_run_id", StringType()),
    ("check_label", StringType()),
)
"""Columns that tables of earlier releases lack. The next run that ends adds them."""


def _schema() -> Schema:
    fields = [NestedField(number, name, StringType()) for number, name in enumerate((*_TEXTS, *_CHECK_TEXTS), 1)]
    fields += [NestedField(number, name, LongType()) for number, name in enumerate(_NUMBERS, 31)]
    fields += [
        NestedField(41, "attempt", IntegerType()),
        NestedField(42, "columns", ListType(43, StringType(), element_required=False)),
        NestedField(44, "ended_at", TimestamptzType()),
    ]
    fields += [NestedField(number, name, kind) for number, (name, kind) in enumerate(_LATER, 51)]
    return assign_fresh_schema_ids(Schema(*fields))


class _CommitToBranch:
    """Compare-and-swap of the branch's head that points the branch to new metadata of the table."""

    def __init__(self, catalog: BranchCatalog, head: str) -> None:
        self._catalog, self._head = catalog, head

    def __call__(self, location: str, metadata: TableMetadata) -> None:
        tables = [table_commit(TABLE, location, metadata)]
        self._head = self._catalog.commit_tables(BRANCH, self._head, f"Update {TABLE}", tables)


class AuditResultsTable:
    """Reader and writer of the audit results table.

    Requires the catalog, the lake's location, and Iceberg's properties for it.
    """

    def __init__(self, catalog: BranchCatalog, lake: str, io: Mapping[str, str]) -> None:
        self._catalog, self._lake, self._io = catalog, lake.rstrip("/"), dict(io)
        self._lock = Lock()

    def record(self, run_id: str, rows: Sequence[Mapping[str, Any]], *, again: bool) -> None:
        """Append the verdicts of a run. Repeated calls for the same run append them once.

        Args:
            again: True if the verdicts may have been recorded before. The rows are then searched too, not only the
                snapshots.

        Raises:
            ServiceUnavailable: another commit came first in every try.
        """
        with self._lock:  # without the lock, the threads of one worker would make each other repeat their commits
            self._record(run_id, rows, again)

    def _record(self, run_id: str, rows: Sequence[Mapping[str, Any]], again: bool) -> None:
        for _ in range(_TRIES):
            table = self._open()
            if any(run_id == _run_of(snapshot) for snapshot in table.metadata.snapshots):
                return
            if again and self._contains(run_id):
                return
            if self._append(table, run_id, rows):
                return
        raise ServiceUnavailable(f"other processes changed {BRANCH} each time before these results could be added")

    def read(self) -> StaticTable | None:
        """Return the current table, or None if no verdicts were recorded yet."""
        version = self._catalog.table_version(BRANCH, TABLE)
        return load_table(version, self._io) if version else None

    def read_rows(self) -> pa.Table | None:
        """Return all rows with all columns, or None if no verdicts were recorded yet. Missing columns are null."""
        table = self.read()
        if table is None:
            return None
        rows, schema = table.scan().to_arrow(), _schema().as_arrow()
        for name, _ in _LATER:
            if name not in rows.column_names:
                rows = rows.append_column(name, pa.nulls(rows.num_rows, schema.field(name).type))
        return rows

    def _contains(self, run_id: str) -> bool:
        table = self.read()
        if table is None:
            return False
        scan = table.scan(row_filter=EqualTo(term="run_id", value=run_id), selected_fields=("run_id",), limit=1)
        return bool(scan.to_arrow().num_rows)

    def _open(self) -> Table:
        head = self._catalog.create_orphan_branch(BRANCH)
        version = self._catalog.table_version(BRANCH, TABLE, head)
        file_io = load_file_io(self._io, self._lake)
        metadata, version = self._load(version) if version else self._create(file_io)
        catalog = BranchCommitCatalog(_CommitToBranch(self._catalog, head))
        return Table((BRANCH, *TABLE.split(".")), metadata, version.metadata_location, file_io, catalog)

    def _load(self, version: TableVersion) -> tuple[TableMetadata, TableVersion]:
        return load_table(version, self._io).metadata, version

    def _create(self, file_io: FileIO) -> tuple[TableMetadata, TableVersion]:
        """Write the metadata of an empty table. The commit of the first rows points the branch to it."""
        metadata = new_table_metadata(
            _schema(),
            UNPARTITIONED_PARTITION_SPEC,
            UNSORTED_SORT_ORDER,
            f"{self._lake}/{TABLE.replace('.', '/')}",
            {"commit.manifest-merge.enabled": "true", "write.metadata.previous-versions-max": "20"},
        )
        location = next_metadata_location(metadata, "")
        ToOutputFile.table_metadata(metadata, file_io.new_output(location))
        return metadata, TableVersion(location, None)

    def _append(self, table: Table, run_id: str, rows: Sequence[Mapping[str, Any]]) -> bool:
        try:
            with table.transaction() as transaction:
                _add_columns(transaction)
                schema = transaction.table_metadata.schema().as_arrow()
                arrow = pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
                transaction.append(arrow, snapshot_properties={RUN_ID: run_id})
        except ServiceUnavailable:
            return False
        known = [snapshot.snapshot_id for snapshot in table.metadata.snapshots]
        if len(known) > 2 * _SNAPSHOTS:
            try:
                table.maintenance.expire_snapshots().by_ids(known[:-_SNAPSHOTS]).commit()
            except ServiceUnavailable:
                return True  # the next run expires them
        return True


def _add_columns(transaction: Transaction) -> None:
    """Add the columns that a table of an earlier release lacks, within the commit that appends."""
    present = transaction.table_metadata.schema().column_names
    missing = [(name, kind) for name, kind in _LATER if name not in present]
    if missing:
        with transaction.update_schema() as update:
            for name, kind in missing:
                update.add_column(name, kind)


def _run_of(snapshot: Any) -> str | None:
    run_id: str | None = snapshot.summary.additional_properties.get(RUN_ID) if snapshot.summary else None
    return run_id
