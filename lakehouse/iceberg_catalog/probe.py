"""Test a catalog's commits to two tables, on scratch tables."""

import contextlib
import uuid

from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.schema import Schema
from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID, SetPropertiesUpdate, TableRequirement
from pyiceberg.types import LongType, NestedField

from lakehouse.iceberg_catalog.tables import RESERVED, CatalogTables
from lakehouse.iceberg_catalog.transactions import CatalogTable, CommitConflict, Committer, TableChange
from sluice.errors import CatalogRefused

_TRIED = "sluice.tried"
_WRONG = 1
"""Id of a snapshot that no table has."""


def probe_commits(tables: CatalogTables, committer: Committer) -> str:
    """Test commits to two tables; return the result for people.

    Raises:
        CatalogRefused: a commit with a wrong second requirement changed the first table, or a valid one changed none.
    """
    names = [(RESERVED, f"probe_{uuid.uuid4().hex[:12]}_{number}") for number in (1, 2)]
    schema = Schema(NestedField(1, "id", LongType()))
    try:
        for name in names:
            tables.catalog.create_table(name, schema)
        if committer.guarantee == "one by one":
            return "the catalog commits several tables one by one: pipelines with several tables need allow_partial"
        _expect_nothing(tables, committer, names)
        committer.commit([_change(_load(tables, name)) for name in names])
        if not all(_is_changed(tables, name) for name in names):
            raise CatalogRefused("a commit to two scratch tables was accepted, but did not change both")
    finally:
        for name in names:
            with contextlib.suppress(NoSuchTableError):
                tables.catalog.drop_table(name)
    return (
        "a commit to two scratch tables changed both, and one with a wrong requirement changed neither: "
        f"{committer.guarantee}"
    )


def _expect_nothing(tables: CatalogTables, committer: Committer, names: list[tuple[str, str]]) -> None:
    """Try a commit whose second requirement is wrong. It must change neither table."""
    wrong = AssertRefSnapshotId(ref="main", snapshot_id=_WRONG)
    first, second = (_load(tables, name) for name in names)
    try:
        committer.commit([_change(first), _change(second, wrong)])
    except CommitConflict:
        pass
    else:
        raise CatalogRefused("a commit to two scratch tables with a wrong requirement was accepted")
    if any(_is_changed(tables, name) for name in names):
        raise CatalogRefused(
            "a commit to two scratch tables with a wrong requirement changed one of them: several tables cannot be "
            "published together here"
        )


def _load(tables: CatalogTables, name: tuple[str, str]) -> CatalogTable:
    table = tables.load_identifier(name)
    if table is None:
        raise CatalogRefused(f"the catalog created the scratch table {'.'.join(name)}, but does not return it")
    return table


def _change(table: CatalogTable, *more: TableRequirement) -> TableChange:
    same_table = AssertTableUUID(uuid=table.metadata.table_uuid)
    return TableChange(table, (same_table, *more), (SetPropertiesUpdate(updates={_TRIED: "yes"}),))


def _is_changed(tables: CatalogTables, name: tuple[str, str]) -> bool:
    return _TRIED in _load(tables, name).metadata.properties
