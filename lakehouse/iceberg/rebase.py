"""Taking over what a run wrote onto a newer main, without copying a row: a rebase of appends.

A conflict means that main changed a table which the run changed too. Where the run did nothing but add data
files to it, the same files can be added to the table as it is now, by a commit of metadata alone. Tables that
main did not change meanwhile are taken over as they are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.manifest import DataFile, ManifestContent
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import SortOrder

from lakehouse.catalog import BranchCatalog, TableCommit, TableDiff
from lakehouse.iceberg.commit import BranchCommitCatalog, table_commit
from lakehouse.iceberg.table_state import TableState

_NEWEST_FORMAT = 2
"""Version 3 numbers rows in the metadata; PyIceberg does not write that yet."""
_VOLATILE = ("created-at", "owner", "nessie.", "write.parquet.compression-codec")
"""Beginnings of table properties that say nothing of how the table is to be read or written."""


class CannotRebase(Exception):
    """Raised when what a run did to a table is more than adding files that fit the table as it is now."""


@dataclass(frozen=True)
class RebaseOptions:
    """How a run is taken over."""

    appends: bool
    """Whether the files may be added to a newer table: what they hold does not rest on the older one."""
    divided: bool
    """Whether bad rows were set apart on the branch."""
    marks: Mapping[str, str]
    """What the new snapshots say of who made them."""


@dataclass(frozen=True)
class RebasedTable:
    """A rebased table."""

    commit: TableCommit
    """What makes a branch hold it."""
    added: bool
    """Whether files were added to a newer table; False where main did not change the table."""


def rebase_tables(
    catalog: BranchCatalog, io: Mapping[str, str], changed: Sequence[TableDiff], base: str, by: RebaseOptions
) -> list[RebasedTable]:
    """Write the metadata by which a newer main holds what a run did; nothing points to it yet.

    Args:
        changed: what the run changed, beside what was there when it began.
        base: the newer hash of main.

    Raises:
        CannotTakeOver: with the reason.
    """
    return [_moved(catalog, io, diff, base, by) for diff in changed]


def _moved(
    catalog: BranchCatalog, io: Mapping[str, str], diff: TableDiff, base: str, by: RebaseOptions
) -> RebasedTable:
    if diff.after is None:
        raise CannotRebase(f"{diff.name} was dropped")
    ours = TableState.load(diff.after, diff.before, io)
    now = catalog.table_version(catalog.main, diff.name, base)
    if now == diff.before:
        return RebasedTable(table_commit(diff.name, diff.after.metadata_location, ours.table.metadata), added=False)
    if not by.appends:
        raise CannotRebase(f"what was written to {diff.name} may rest on what main held before")
    if now is None:
        raise CannotRebase(f"main dropped {diff.name} meanwhile")
    files = list(_only_added(diff.name, ours, by.divided))
    target = TableState.load(now, None, io).table
    _check_fit(diff.name, ours, target.metadata, files)
    noted: list[tuple[str, TableMetadata]] = []
    commit_catalog = BranchCommitCatalog(lambda location, metadata: noted.append((location, metadata)))
    table = Table(("taken", *diff.name.split(".")), target.metadata, now.metadata_location, target.io, commit_catalog)
    with (
        table.transaction() as transaction,
        transaction.update_snapshot(snapshot_properties=dict(by.marks)).fast_append() as append,
    ):
        for file in files:
            append.append_data_file(file)
    (location, metadata) = noted[-1]
    return RebasedTable(table_commit(diff.name, location, metadata), added=True)


def _only_added(name: str, ours: TableState, divided: bool) -> Iterator[DataFile]:
    """Yield the files that the run added, if that is all it did to the rows of the table."""
    made = {snapshot.snapshot_id for snapshot in ours.snapshots}
    for manifest in ours.manifests:
        if manifest.content == ManifestContent.DELETES and manifest.added_snapshot_id in made:
            raise CannotRebase(f"the run deleted rows of {name}")
    operations = {snapshot.summary.operation.value for snapshot in ours.snapshots if snapshot.summary}
    if operations - {"append"} and not divided:
        raise CannotRebase(f"the run did more to {name} than append")
    if operations - {"append"} and ours.before:  # setting bad rows apart removes the run's own files
        before = {entry.data_file.file_path for entry in _before(ours).entries(added_only=False)}
        after = {entry.data_file.file_path for entry in ours.entries(added_only=False)}
        if before - after:
            raise CannotRebase(f"the run replaced files of {name}")
    for entry in ours.entries(added_only=True):
        yield entry.data_file


def _before(ours: TableState) -> TableState:
    assert ours.before
    return TableState(ours.before, None)


def _check_fit(name: str, ours: TableState, target: TableMetadata, files: Sequence[DataFile]) -> None:
    """Make sure that files written for our table can be added to the other one as they are."""
    mine = ours.table.metadata
    if max(mine.format_version, target.format_version) > _NEWEST_FORMAT:
        raise CannotRebase(f"{name} has format version {target.format_version}")
    if _columns(mine.schema()) != _columns(target.schema()):
        raise CannotRebase(f"the schema of {name} differs from main's")
    specs = mine.specs()
    if any(_spec(specs[file.spec_id]) != _spec(target.spec()) for file in files):
        raise CannotRebase(f"the partitioning of {name} differs from main's")
    if _order(mine.sort_order_by_id(mine.default_sort_order_id)) != _order(
        target.sort_order_by_id(target.default_sort_order_id)
    ):
        raise CannotRebase(f"the sort order of {name} differs from main's")
    earlier = ours.before.metadata.properties if ours.before else target.properties
    if _telling(mine.properties) != _telling(earlier):
        raise CannotRebase(f"the run changed properties of {name}")


def _columns(schema: Schema) -> list[str]:
    return [str(field) for field in schema.fields]


def _spec(spec: PartitionSpec) -> list[tuple[int, int, str]]:
    return [(field.source_id, field.field_id, str(field.transform)) for field in spec.fields]


def _order(order: SortOrder | None) -> list[str]:
    return [str(field) for field in order.fields] if order else []


def _telling(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if not key.startswith(_VOLATILE)}
