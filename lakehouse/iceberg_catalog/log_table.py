"""The Iceberg table that stores the commit log: each branch is a reference, its head a snapshot without files.

The log therefore needs only an Iceberg catalog. Its branches move by compare-and-swap, and a commit to it can be part
of the transaction that moves the tables. Every engine reads the heads as `sluice.commits.snapshots`. Each branch has
its own snapshot, which is removed when the branch moves, so no change removes a snapshot that another branch needs.
"""

import contextlib
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from pyiceberg.avro.codecs import AvroCompressionCodec
from pyiceberg.exceptions import TableAlreadyExistsError
from pyiceberg.io import load_file_io
from pyiceberg.manifest import write_manifest_list
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

from lakehouse.iceberg_catalog.commit_log import CommitLog
from lakehouse.iceberg_catalog.commit_pages import CommitPages
from lakehouse.iceberg_catalog.known_log import NAME, KnownLog
from lakehouse.iceberg_catalog.log_commits import MAIN, ROOT_REF, LogCommit, now
from lakehouse.iceberg_catalog.tables import CatalogTables
from lakehouse.iceberg_catalog.transactions import (
    CatalogTable,
    CommitConflict,
    Committer,
    TableChange,
    last_sequence_number,
    set_branch,
)
from sluice.errors import CatalogRefused

_COMMIT = "sluice.commit"
_HASH = "sluice.commit-hash"
_CODEC: AvroCompressionCodec = "deflate"
_STATES_KEPT = 64
_PROPERTIES = {
    "gc.enabled": "false",  # a maintenance job that expires snapshots would forget commits
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
_ROOT = LogCommit.model_validate({"at": "2000-01-01T00:00:00Z", "message": "The root of all branches"})
RefMoves = Mapping[str, tuple[str | None, str | None]]
"""By branch, its expected head and its new head; None means that the branch does not exist before or after."""


class CommitLogTable:
    """Reader of the log, and source of changes to it.

    Requires the tables of the catalog, and their committer.
    """

    def __init__(self, tables: CatalogTables, committer: Committer) -> None:
        self._tables, self._committer, self._known = tables, committer, KnownLog(tables)
        self._logs: tuple[str, CommitLog] | None = None
        self._pages: CommitPages | None = None

    def read(self) -> tuple[CatalogTable, CommitLog]:
        """Return the log's table and the present log. The table is created in a catalog that never had one."""
        table = self._tables.load_identifier(NAME) or self._create()
        self._known.check(table)
        if table.ref(ROOT_REF) is None:
            table = self._begin(table)
        if self._logs and self._logs[0] == table.location:
            return table, self._logs[1]
        states = dict(self._logs[1].states) if self._logs else {}
        newest = dict([*states.items()][-_STATES_KEPT:])
        commits = _commits(table, self._logs[1].heads if self._logs else {})
        branches = {name: commits[ref.snapshot_id].hash for name, ref in table.metadata.refs.items()}
        log = CommitLog(branches, {each.hash: each for each in commits.values()}, self._pages_of(table), newest)
        self._logs = (table.location, log)
        return table, log

    def change(self, table: CatalogTable, log: CommitLog, commits: Sequence[LogCommit], moves: RefMoves) -> TableChange:
        """Return the change of the log's table that moves branches; write the pages of their present heads.

        Args:
            commits: the new commits.

        Raises:
            CommitConflict: a branch is not at its expected head.
        """
        known = {commit.hash: commit for commit in commits}
        requirements: list[TableRequirement] = [AssertTableUUID(uuid=table.metadata.table_uuid)]
        updates: list[TableUpdate] = []
        left: list[int] = []
        for name, (expected, target) in moves.items():
            if log.branches.get(name) != expected:
                raise CommitConflict(f"the branch {name} moved meanwhile")
            snapshot = table.ref(name)
            requirements.append(AssertRefSnapshotId(ref=name, snapshot_id=snapshot))
            if target == expected:
                continue
            commit = known.get(target) or log.commit(target) if target else None
            if commit:
                updates += _move(name, commit, table, len(updates) + 1)
            else:
                updates.append(RemoveSnapshotRefUpdate(ref_name=name))
            if expected and commit and commit.parent == expected:
                self._pages_of(table).write(expected, log.ancestors(expected), partial(log.state, expected))
            left += [snapshot] if snapshot is not None else []
        if left:
            updates.append(RemoveSnapshotsUpdate(snapshot_ids=left))
        return TableChange(table, tuple(requirements), tuple(updates))

    def delete_pages(self, before: CommitLog, after: CommitLog, moves: RefMoves) -> None:
        """Delete the pages that no branch needs after branches were deleted.

        Args:
            after: the log as read after the deletion. From then on, no process can copy the deleted branches.
        """
        for expected, target in moves.values():
            if expected and target is None and self._pages:
                with contextlib.suppress(CatalogRefused):  # a branch with a damaged history: its readable pages stay
                    for hash in after.unneeded(before.own_commits(expected)):
                        self._pages.delete(hash)

    def _pages_of(self, table: CatalogTable) -> CommitPages:
        folder = f"{table.metadata.location.rstrip('/')}/commits"
        if self._pages is None or self._pages.folder != folder:
            self._pages = CommitPages(self._tables.io, folder)
        return self._pages

    def _create(self) -> CatalogTable:
        self._known.check_missing()
        self._tables.create_namespace(NAME[:1])
        with contextlib.suppress(TableAlreadyExistsError):
            schema = Schema(NestedField(1, "note", StringType()))
            self._tables.catalog.create_table(NAME, schema, properties=_PROPERTIES)
        table = self._tables.load_identifier(NAME)
        assert table
        return table

    def _begin(self, table: CatalogTable) -> CatalogTable:
        """Add the root commit with the empty manifest list that all commits share. Another process may do the same."""
        empty = _empty_manifest_list(table, self._tables.io)
        updates: tuple[TableUpdate, ...] = (
            *_move(ROOT_REF, _ROOT, table, 1, empty),
            *_move(MAIN, _ROOT, table, 2, empty),
        )
        # Both references are new. PyIceberg cannot require that, except for main, if a table has no snapshot.
        requirements = (AssertRefSnapshotId(ref=MAIN, snapshot_id=None),)
        with contextlib.suppress(CommitConflict):
            self._committer.commit([TableChange(table, requirements, updates)])
        begun = self._tables.load_identifier(NAME)
        assert begun
        return begun


def _commits(table: CatalogTable, known: Mapping[str, LogCommit]) -> dict[int, LogCommit]:
    """Return the commits in the log's table, by their snapshots."""
    commits: dict[int, LogCommit] = {}
    for snapshot in table.metadata.snapshots:
        properties = snapshot.summary.additional_properties if snapshot.summary else {}
        if _COMMIT not in properties or _HASH not in properties:
            raise CatalogRefused(f"{'.'.join(NAME)} contains a snapshot that is not a commit of Sluice")
        hash = properties[_HASH]
        commits[snapshot.snapshot_id] = known.get(hash) or LogCommit.model_validate_json(properties[_COMMIT])
    return commits


def _move(
    branch: str, commit: LogCommit, table: CatalogTable, number: int, manifest_list: str = ""
) -> tuple[TableUpdate, ...]:
    """Return the updates that move a branch to a new snapshot with a commit.

    The snapshot has no parent in the table: the commit names its own.

    Args:
        manifest_list: an empty manifest list; by default that of the other snapshots.
    """
    metadata = table.metadata
    body = {_HASH: commit.hash, _COMMIT: commit.model_dump_json(exclude_defaults=True)}
    snapshot = Snapshot(
        snapshot_id=metadata.new_snapshot_id(),
        parent_snapshot_id=None,
        sequence_number=last_sequence_number(metadata) + number,
        timestamp_ms=max(int(now().timestamp() * 1000), metadata.last_updated_ms),
        manifest_list=manifest_list or metadata.snapshots[0].manifest_list,
        summary=Summary(Operation.APPEND, **body),
        schema_id=metadata.current_schema_id,
    )
    return AddSnapshotUpdate(snapshot=snapshot), set_branch(branch, snapshot.snapshot_id)


def _empty_manifest_list(table: CatalogTable, io: Mapping[str, Any]) -> str:
    """Write an empty manifest list next to the metadata of a table; return its location."""
    location = f"{table.metadata.location}/metadata/snap-0-{uuid.uuid4()}.avro"
    output = load_file_io(dict(io), location).new_output(location)
    with write_manifest_list(2, output, 0, None, 1, _CODEC):
        return location
