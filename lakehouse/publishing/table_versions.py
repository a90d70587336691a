"""Versions of tables: compare them on main, and convert them for a run's history."""

from collections.abc import Iterable, Mapping

from lakehouse.catalog import BranchCatalog, TableDiff, TableVersion
from sluice.contracts.write import ChangedTable, TableVersionRef


def tables_changed_since(catalog: BranchCatalog, tables: Iterable[str], since: str, at: str = "") -> list[str]:
    """Return the tables whose version on main changed since the hash `since`.

    Args:
        at: the later hash of main; by default its head, read once so that all tables are compared at one moment.
    """
    main, names = catalog.main, list(tables)
    if not names:
        return []
    at = at or catalog.head(main)
    if at == since:
        return []
    return [name for name in names if catalog.table_version(main, name, at) != catalog.table_version(main, name, since)]


def changed_tables(diffs: Iterable[TableDiff]) -> dict[str, ChangedTable]:
    """Return the versions of changed tables in the form that a run's history records."""
    return {diff.name: ChangedTable(before=_ref(diff.before), after=_ref(diff.after)) for diff in diffs}


def table_diffs(changed: Mapping[str, ChangedTable]) -> list[TableDiff]:
    """Convert the result of `changed_tables` back. The diffs can be read after the branch was deleted."""
    return [TableDiff(name, _version(each.before), _version(each.after)) for name, each in changed.items()]


def _ref(version: TableVersion | None) -> TableVersionRef | None:
    if version is None:
        return None
    return TableVersionRef(
        metadata_location=version.metadata_location, snapshot_id=version.snapshot_id, identity=version.identity
    )


def _version(ref: TableVersionRef | None) -> TableVersion | None:
    return TableVersion(ref.metadata_location, ref.snapshot_id, ref.identity) if ref else None
