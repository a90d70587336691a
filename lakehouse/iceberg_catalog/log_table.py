"""The table in which the commit log is kept: each commit is a snapshot without files, each branch a reference.

So the log needs nothing but an Iceberg catalog, its branches move by compare-and-swap, and a commit to it can be part
of the transaction that moves the tables. Every engine reads it as `sluice.commits.snapshots`.
"""

import contextlib
from collections.abc import Mapping, Sequence
from datetime import timedelta

from pyiceberg.exceptions import NamespaceAlreadyExistsError, TableAlreadyExistsError
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.types import NestedField, StringType

from lakehouse.iceberg_catalog.commit_log import MAIN, ROOT_REF, CommitLog, LogCommit, now
from lakehouse.iceberg_catalog.tables import RESERVED, CatalogTables
from lakehouse.iceberg_catalog.transactions import (
    CatalogTable,
    CommitConflict,
    Committer,
    TableChange,
    last_sequence_number,
    set_branch,
)
from sluice.errors import CatalogRefused

NAME = (RESERVED, "commits")
_COMMIT = "sluice.commit"
_KEPT = timedelta(hours=1)
"""How long a commit is kept that no branch needs: a copy of its branch may be under way."""
_PROPERTIES = {
    "gc.enabled": "false",  # a maintenance job that expires snapshots would forget commits
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
_ROOT = LogCommit.model_validate({"at": "2000-01-01T00:00:00Z", "message": "The root of all branches"})
RefMoves = Mapping[str, tuple[str | None, str | None]]
"""By branch, the head that it is expected at and its new one; None where there is no such branch before or after."""


class CommitLogTable:
    """Reads the log and says what changes it. Needs the tables of the catalog."""

    def __init__(self, tables: CatalogTables, committer: Committer) -> None:
        self._tables, self._committer = tables, committer
        self._commits: dict[int, LogCommit] = {}
        self._logs: tuple[str, CommitLog] | None = None

    def read(self) -> tuple[CatalogTable, CommitLog]:
        """Return the log as it is now, with its table. The table is created where it is missing."""
        table = self._tables.load_identifier(NAME) or self._create()
        if table.ref(ROOT_REF) is None:
            table = self._begin(table)
        if self._logs and self._logs[0] == table.location:
            return table, self._logs[1]
        commits = {each.snapshot_id: self._commit(each) for each in table.metadata.snapshots}
        branches = {name: commits[ref.snapshot_id].hash for name, ref in table.metadata.refs.items()}
        states = self._logs[1]._tables if self._logs else {}
        log = CommitLog(branches, {commit.hash: commit for commit in commits.values()}, states)
        self._logs = (table.location, log)
        return table, log

    def change(
        self, table: CatalogTable, log: CommitLog, commits: Sequence[LogCommit], moves: RefMoves, removed: str = ""
    ) -> TableChange:
        """Return the change of the log's table that adds commits and moves branches.

        Args:
            removed: a branch that is removed: commits that it alone needed go with it.
        """
        requirements: list[TableRequirement] = [AssertTableUUID(uuid=table.metadata.table_uuid)]
        updates: list[TableUpdate] = []
        manifest_list = next(each.manifest_list for each in table.metadata.snapshots)
        for number, commit in enumerate(commits, 1):
            updates.append(AddSnapshotUpdate(snapshot=_snapshot(commit, table, manifest_list, number)))
        known = {**log.commits, **{commit.hash: commit for commit in commits}}
        for name, (expected, target) in moves.items():
            snapshot = known[expected].snapshot_id if expected else None
            requirements.append(AssertRefSnapshotId(ref=name, snapshot_id=snapshot))
            if target is None and expected is not None:
                updates.append(RemoveSnapshotRefUpdate(ref_name=name))
            elif target is not None and target != expected:
                updates.append(set_branch(name, known[target].snapshot_id))
        if removed:
            unneeded = [each.snapshot_id for each in log.unreachable(removed, now() - _KEPT)]
            if unneeded:
                updates.append(RemoveSnapshotsUpdate(snapshot_ids=unneeded))
        return TableChange(table, tuple(requirements), tuple(updates))

    def _commit(self, snapshot: Snapshot) -> LogCommit:
        known = self._commits.get(snapshot.snapshot_id)
        if known is None:
            text = snapshot.summary.additional_properties.get(_COMMIT) if snapshot.summary else None
            if text is None:
                raise CatalogRefused(f"{'.'.join(NAME)} holds a snapshot that is no commit of Sluice")
            known = self._commits[snapshot.snapshot_id] = LogCommit.model_validate_json(text)
        return known

    def _create(self) -> CatalogTable:
        with contextlib.suppress(NamespaceAlreadyExistsError):
            self._tables.catalog.create_namespace(NAME[:1])
        with contextlib.suppress(TableAlreadyExistsError):
            schema = Schema(NestedField(1, "note", StringType()))
            self._tables.catalog.create_table(NAME, schema, properties=_PROPERTIES)
        table = self._tables.load_identifier(NAME)
        assert table
        return table

    def _begin(self, table: CatalogTable) -> CatalogTable:
        """Add the root commit, whose empty list of manifests all commits share."""
        loaded = self._tables.catalog.load_table(NAME)
        if not loaded.metadata.snapshots:
            with loaded.transaction() as transaction, transaction.update_snapshot(branch=None).fast_append():
                pass
        loaded = loaded.refresh()
        table = CatalogTable(NAME, loaded.metadata, loaded.metadata_location)
        empty = loaded.metadata.snapshots[0]
        root = _snapshot(_ROOT, table, empty.manifest_list, 1)
        updates: tuple[TableUpdate, ...] = (
            AddSnapshotUpdate(snapshot=root),
            set_branch(ROOT_REF, root.snapshot_id),
            set_branch(MAIN, root.snapshot_id),
            RemoveSnapshotsUpdate(snapshot_ids=[empty.snapshot_id]),
        )
        requirements = (AssertRefSnapshotId(ref=ROOT_REF, snapshot_id=None),)
        with contextlib.suppress(CommitConflict):
            self._committer.commit([TableChange(table, requirements, updates)])
        begun = self._tables.load_identifier(NAME)
        assert begun
        return begun


def _snapshot(commit: LogCommit, table: CatalogTable, manifest_list: str, number: int) -> Snapshot:
    """Return the snapshot that keeps a commit. It has no parent in the table: the commit names its own."""
    return Snapshot(
        snapshot_id=commit.snapshot_id,
        parent_snapshot_id=None,
        sequence_number=last_sequence_number(table.metadata) + number,
        timestamp_ms=max(int(now().timestamp() * 1000), table.metadata.last_updated_ms),
        manifest_list=manifest_list,
        summary=Summary(Operation.APPEND, **{_COMMIT: commit.model_dump_json(exclude_defaults=True)}),
        schema_id=table.metadata.current_schema_id,
    )
