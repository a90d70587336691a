"""The ledger: the verdicts of every run that ended, as an Iceberg table on a Nessie branch of its own.

It lives beside main and never goes there: main moves by audited merges only (ADR 9).
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
from pyiceberg.table import StaticTable, Table
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import IntegerType, ListType, LongType, NestedField, StringType, TimestamptzType

from lakehouse.iceberg.commit import BranchCommitCatalog, next_metadata_location
from lakehouse.nessie.catalog import NessieCatalog
from lakehouse.nessie.operations import put_table_operation
from sluice.errors import ServiceUnavailable
from sluice.publishing.certificate import RUN_MARK

BRANCH = "sluice/audits"
TABLE = "sluice.audit_results"
_TRIES = 20
_SNAPSHOTS = 20
"""From twice as many snapshots on, all but the last so many are forgotten; their rows stay. PyIceberg copies what a
table's metadata holds many times for each append, so that a long memory costs every run."""

_TEXTS = ("run_id", "workflow_id", "pipeline", "outcome", "reason", "audited_hash", "report")
_CHECK_TEXTS = ("table_name", "check_name", "scope", "verdict", "observed", "expected", "answered_by", "message")
_NUMBERS = ("failed_rows", "files", "bytes")


def _schema() -> Schema:
    fields = [NestedField(number, name, StringType()) for number, name in enumerate((*_TEXTS, *_CHECK_TEXTS), 1)]
    fields += [NestedField(number, name, LongType()) for number, name in enumerate(_NUMBERS, 31)]
    fields += [
        NestedField(41, "attempt", IntegerType()),
        NestedField(42, "columns", ListType(43, StringType(), element_required=False)),
        NestedField(44, "ended_at", TimestamptzType()),
    ]
    return assign_fresh_schema_ids(Schema(*fields))


class _Moving:
    """Moves the ledger's pointer, by compare-and-swap of the branch's head."""

    def __init__(self, catalog: NessieCatalog, head: str, content: str | None) -> None:
        self._catalog, self._head, self._content = catalog, head, content

    def __call__(self, place: str, metadata: TableMetadata) -> None:
        operations = [put_table_operation(TABLE, place, metadata, self._content)]
        if not self._content:
            operations = [*self._catalog.put_namespaces(BRANCH, [TABLE]), *operations]
        self._head = self._catalog.commit(BRANCH, self._head, f"Update {TABLE}", operations)
        self._content = self._content or str(self._catalog.content(BRANCH, TABLE).id)


class AuditResultsTable:
    """Needs the catalog, the lake's location, and the properties by which Iceberg reads it."""

    def __init__(self, catalog: NessieCatalog, lake: str, io: Mapping[str, str]) -> None:
        self._catalog, self._lake, self._io = catalog, lake.rstrip("/"), dict(io)
        self._turn = Lock()

    def record(self, run_id: str, rows: Sequence[Mapping[str, Any]], *, again: bool) -> None:
        """Append what became of a run, once, however often this is called for it.

        Args:
            again: whether it may have been recorded before: then the rows are asked, too.

        Raises:
            ServiceUnavailable: others moved the ledger each time before.
        """
        with self._turn:  # those of one worker would only undo each other's work
            self._record(run_id, rows, again)

    def _record(self, run_id: str, rows: Sequence[Mapping[str, Any]], again: bool) -> None:
        for _ in range(_TRIES):
            table = self._open()
            if any(run_id == _run_of(snapshot) for snapshot in table.metadata.snapshots):
                return
            if again and self._holds(run_id):
                return
            if self._append(table, run_id, rows):
                return
        raise ServiceUnavailable(f"others moved {BRANCH} each time before these results could be added")

    def read(self) -> StaticTable | None:
        """Return the ledger as it is now, or None if nothing was recorded yet."""
        place = self._catalog.table(BRANCH, TABLE)
        return StaticTable.from_metadata(place, self._io) if place else None

    def _holds(self, run_id: str) -> bool:
        table = self.read()
        if table is None:
            return False
        found = table.scan(row_filter=EqualTo(term="run_id", value=run_id), selected_fields=("run_id",), limit=1)
        return bool(found.to_arrow().num_rows)

    def _open(self) -> Table:
        head = self._catalog.bare_branch(BRANCH)
        found = self._catalog.content(BRANCH, TABLE)
        file_io = load_file_io(self._io, self._lake)
        if found is None:
            metadata, place = self._new(file_io)
        else:
            place = found.metadata_location
            metadata = StaticTable.from_metadata(place, self._io).metadata
        catalog = BranchCommitCatalog(_Moving(self._catalog, head, found.id if found else None))
        return Table(("ledger", *TABLE.split(".")), metadata, place, file_io, catalog)

    def _new(self, file_io: FileIO) -> tuple[TableMetadata, str]:
        """Write the metadata of an empty table; it comes to the branch with the first rows."""
        metadata = new_table_metadata(
            _schema(),
            UNPARTITIONED_PARTITION_SPEC,
            UNSORTED_SORT_ORDER,
            f"{self._lake}/{TABLE.replace('.', '/')}",
            {"commit.manifest-merge.enabled": "true", "write.metadata.previous-versions-max": "20"},
        )
        place = next_metadata_location(metadata, "")
        ToOutputFile.table_metadata(metadata, file_io.new_output(place))
        return metadata, place

    def _append(self, table: Table, run_id: str, rows: Sequence[Mapping[str, Any]]) -> bool:
        arrow = pa.Table.from_pylist([dict(row) for row in rows], schema=table.schema().as_arrow())
        try:
            with table.transaction() as transaction:
                transaction.append(arrow, snapshot_properties={RUN_MARK: run_id})
        except ServiceUnavailable:
            return False
        known = [snapshot.snapshot_id for snapshot in table.metadata.snapshots]
        if len(known) > 2 * _SNAPSHOTS:
            try:
                table.maintenance.expire_snapshots().by_ids(known[:-_SNAPSHOTS]).commit()
            except ServiceUnavailable:
                return True  # whoever is next forgets them
        return True


def _run_of(snapshot: Any) -> str | None:
    found: str | None = snapshot.summary.additional_properties.get(RUN_MARK) if snapshot.summary else None
    return found
