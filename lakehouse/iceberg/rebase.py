"""Add the data files that a run appended to a newer version of the table: a commit of metadata alone.

A conflict means that main changed a table which the run changed too. `sluice/publishing/rebase.py` decides which
changes can be rebased. Tables that main did not change meanwhile are committed unchanged.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import SortOrder

from lakehouse.catalog import BranchCatalog, TableCommit, TableDiff, TableVersion
from lakehouse.iceberg.commit import BranchCommitCatalog, table_commit
from lakehouse.iceberg.table_identity import is_another_table
from lakehouse.iceberg.table_state import TableState, load_table
from sluice.publishing.rebase import TableLayout


@dataclass(frozen=True)
class TableRebase:
    """One table that a run changed, with its version on main now. Implements `RebaseCandidate`."""

    diff: TableDiff
    on_main: TableVersion | None
    io: Mapping[str, str]

    @property
    def name(self) -> str:
        """Name of the table."""
        return self.diff.name

    @property
    def dropped(self) -> bool:
        """True if the run dropped the table."""
        return self.diff.after is None

    @property
    def changed_on_main(self) -> bool:
        """True if main has another version of the table than when the run began."""
        return self.on_main != self.diff.before

    @property
    def dropped_on_main(self) -> bool:
        """True if main no longer has the table."""
        return self.on_main is None

    @property
    def replaced_on_main(self) -> bool:
        """True if the table was dropped on main since the run began, and another one of its name was created."""
        return is_another_table(self.diff.before, self.on_main, self.io)

    @cached_property
    def operations(self) -> set[str]:
        """Iceberg's names for the operations of the run's snapshots."""
        return {snapshot.summary.operation.value for snapshot in self._state.snapshots if snapshot.summary}

    @cached_property
    def deletes_rows(self) -> bool:
        """True if the run added or removed row-level deletes."""
        return bool(self._state.live.added_deletes or self._state.live.removed_deletes)

    @cached_property
    def removed_files(self) -> int:
        """Number of data files from before the run that the run removed."""
        return len(self._state.live.removed)

    @cached_property
    def layout(self) -> TableLayout:
        """Layout of the table on the branch, with the partitionings of the files that the run added."""
        table = self._state.table
        specs = table.metadata.specs()
        return _layout(table, {_partitioning(specs[file.spec_id]) for file in self._files})

    @cached_property
    def layout_on_main(self) -> TableLayout:
        """Layout of the table on main now."""
        return _layout(self._target, {_partitioning(self._target.spec())})

    @property
    def properties_before(self) -> Mapping[str, str]:
        """Properties of the table before the run; those on main if the run created the table."""
        return (self._state.before or self._target).properties

    @cached_property
    def _state(self) -> TableState:
        assert self.diff.after
        return TableState.load(self.diff.after, self.diff.before, self.io)

    @cached_property
    def _target(self) -> StaticTable:
        assert self.on_main
        return load_table(self.on_main, self.io)

    @cached_property
    def _files(self) -> list[DataFile]:
        """Data files that the run added."""
        return [entry.data_file for entry in self._state.entries(added_only=True)]

    def commit(self, marks: Mapping[str, str]) -> TableCommit:
        """Write the rebased metadata if main changed the table; return the commit for the branch.

        Args:
            marks: the properties of a new snapshot, which name the attempt.
        """
        if not self.changed_on_main:
            assert self.diff.after
            return table_commit(self.name, self.diff.after.metadata_location, self._state.table.metadata)
        target = self._target
        written: list[tuple[str, TableMetadata]] = []
        catalog = BranchCommitCatalog(lambda location, metadata: written.append((location, metadata)))
        table = Table(("rebase", *self.name.split(".")), target.metadata, target.metadata_location, target.io, catalog)
        with (
            table.transaction() as transaction,
            transaction.update_snapshot(snapshot_properties=dict(marks)).fast_append() as append,
        ):
            for file in self._files:
                append.append_data_file(file)
        location, metadata = written[-1]
        return table_commit(self.name, location, metadata)


def read_rebase(catalog: BranchCatalog, io: Mapping[str, str], diff: TableDiff, base: str) -> TableRebase:
    """Read the data that a rebase of one table needs.

    Args:
        diff: the run's change, compared with main when the run began.
        base: the newer hash of main.
    """
    return TableRebase(diff, catalog.table_version(catalog.main, diff.name, base), io)


def compacted_tables(
    catalog: BranchCatalog, io: Mapping[str, str], names: Iterable[str], since: str, at: str
) -> list[str]:
    """Return the tables that main only compacted between two of its hashes."""
    main = catalog.main
    pairs = [(name, catalog.table_version(main, name, since), catalog.table_version(main, name, at)) for name in names]
    return [name for name, before, after in pairs if before and after and _is_compacted(before, after, io)]


def _is_compacted(before: TableVersion, after: TableVersion, io: Mapping[str, str]) -> bool:
    """Return True if main only compacted a table. If files were deleted since, that is unproven."""
    try:
        return before != after and TableState.load(after, before, io).compacted_since
    except FileNotFoundError:
        return False


def _layout(table: StaticTable, partitionings: Collection[str]) -> TableLayout:
    metadata = table.metadata
    return TableLayout(
        format_version=metadata.format_version,
        columns=_columns(table.schema()),
        partitionings=partitionings,
        sort_order=_sort_order(metadata.sort_order_by_id(metadata.default_sort_order_id)),
        properties=table.properties,
    )


def _columns(schema: Schema) -> list[str]:
    return [str(field) for field in schema.fields]


def _partitioning(spec: PartitionSpec) -> str:
    return str([(field.source_id, field.field_id, str(field.transform)) for field in spec.fields])


def _sort_order(order: SortOrder | None) -> list[str]:
    return [str(field) for field in order.fields] if order else []
