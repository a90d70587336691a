"""Describe a diff of tables for people: `12,408 rows added, 37 removed`, a cell as `open → paid`."""

from typing import Literal

from sluice.contracts.table_diffs import (
    ChangedRow,
    DiffTablesResult,
    FilesRead,
    RowDifferences,
    SchemaChange,
    TableDiffResult,
    TableDiffState,
)
from sluice.presentation.cells import shown_value
from sluice.presentation.changes import describe_row_counts
from sluice.sizes import format_count, format_size

_SIGNS = {"added": "+", "removed": "\N{MINUS SIGN}", "changed": "~"}
_HASH = 12
ARROW = " → "


def signed(kind: Literal["added", "removed", "changed"], count: int) -> str:
    """Format a number of rows with the sign of its kind: `+12,408`. Zero has no sign."""
    return f"{_SIGNS[kind]}{count:,}" if count else "0"


def describe_states(result: DiffTablesResult) -> str:
    """Return the two states in one line, the newer first."""
    before, after = result.before, result.after
    return f"{after.description} at {after.hash[:_HASH]}, compared with {before.description} at {before.hash[:_HASH]}"


def describe_counts(table: TableDiffResult) -> str:
    """Return the state of a table with its numbers of rows, its key and the files that were read."""
    rows = table.rows
    if rows is None:
        return table.state
    same = f"{format_count(rows.rewritten, 'row')} rewritten unchanged" if rows.rewritten else ""
    key = f"key {', '.join(table.key.columns)} ({table.key.source})" if table.key.columns else ""
    return "; ".join(filter(None, [_describe_differing(table.state, rows), same, key, describe_read(table.read)]))


def _describe_differing(state: TableDiffState, rows: RowDifferences) -> str:
    if state in ("created", "dropped"):
        return f"{state}, {format_count(rows.total, 'row')}"
    counts = describe_row_counts({"added": rows.added, "removed": rows.removed, "changed": rows.changed})
    return f"{state}: {counts}" if counts else state


def describe_read(read: FilesRead) -> str:
    """Return how many files were read of how many: `read 2 of 512 files (3.1 MiB of 4.0 GiB)`."""
    sizes = f" ({format_size(read.bytes)}" + ("" if read.all_bytes is None else f" of {format_size(read.all_bytes)}")
    return f"read {read.files:,} of {format_count(read.all_files, 'file')}" + (f"{sizes})" if read.files else "")


def describe_schema_change(change: SchemaChange) -> str:
    """Return a change of a column: `+ note long`, `- note long`, `v → value`, `amount int → long`."""
    if change.change == "added":
        return f"+ {change.column} {change.after}"
    if change.change == "dropped":
        return f"- {change.column} {change.before}"
    pair = f"{change.before}{ARROW}{change.after}"
    return pair if change.change == "renamed" else f"{change.column} {pair}"


def changed_cells(row: ChangedRow) -> list[tuple[str, str]]:
    """Return the changed cells of a row: the column, and its value before and after."""
    return [(name, f"{shown_value(cell.before)}{ARROW}{shown_value(cell.after)}") for name, cell in row.cells.items()]


def main_moved(result: DiffTablesResult) -> str:
    """Return a sentence about tables that main changed after the base of the branch; empty if there are none."""
    if not result.moved:
        return ""
    return (
        f"{result.before.branch} changed {', '.join(result.moved)} after the base of the branch; the diff does not "
        "contain these changes"
    )
