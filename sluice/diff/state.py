"""Decide the state of a table in a diff."""

from collections.abc import Sequence

from sluice.contracts.table_diffs import RowDifferences, SchemaChange, TableDiffState


def table_state(
    *, existed: bool, exists: bool, rows: RowDifferences | None, changes: Sequence[SchemaChange]
) -> TableDiffState:
    """Return the state of a table: what changed, most important first."""
    if existed and not exists:
        return "dropped"
    if exists and not existed:
        return "created"
    if rows is None:
        return "not compared"
    if rows.total:
        return "changed"
    return "schema only" if changes else "unchanged"
