"""The versions of changed tables, as the history of a run keeps them: they can be read when the branch is gone."""

from collections.abc import Iterable, Mapping

from lakehouse.catalog import TableDiff, TableVersion
from sluice.contracts.write import ChangedTable, TableVersionRef


def changed_tables(diffs: Iterable[TableDiff]) -> dict[str, ChangedTable]:
    """Return the versions of changed tables as a run's history keeps them."""
    return {diff.name: ChangedTable(before=_ref(diff.before), after=_ref(diff.after)) for diff in diffs}


def table_diffs(changed: Mapping[str, ChangedTable]) -> list[TableDiff]:
    """Return what `changed_tables` was made from: it can be read when the branch is gone."""
    return [TableDiff(name, _version(each.before), _version(each.after)) for name, each in changed.items()]


def _ref(version: TableVersion | None) -> TableVersionRef | None:
    if version is None:
        return None
    return TableVersionRef(metadata_location=version.metadata_location, snapshot_id=version.snapshot_id)


def _version(ref: TableVersionRef | None) -> TableVersion | None:
    return TableVersion(ref.metadata_location, ref.snapshot_id) if ref else None
