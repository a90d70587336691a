"""Count the rows that a run inserted, updated and removed. Iceberg's metadata alone does not show these numbers.

A data file is written once. To change one row, an engine copies the other rows of the file into a new file. Counts by
files therefore call the copied rows removed and added, although they did not change.
"""

from collections import Counter
from collections.abc import Hashable

from sluice.contracts.table_changes import RowCounts, TableChange
from sluice.pipeline.write_modes import WriteMode


def written_row_counts(change: TableChange, mode: WriteMode, rows_merged: int | None = None) -> RowCounts | None:
    """Return the row counts of a verified write, from its mode if that says more than the change itself.

    Args:
        rows_merged: number of rows that a merge received, each with keys of its own.
    """
    if change.created or change.deletes_by_value or not change.deleted_rows:
        return change.rows
    if mode.replaces_rows:
        return RowCounts(inserted=change.added_rows, replaced=change.deleted_rows, known_by="replacement")
    if rows_merged is None:
        return change.rows
    # A merge removes no row: the growth of the table was inserted, and each other row of the input matched one old row.
    inserted = change.added_rows - change.deleted_rows
    updated = rows_merged - inserted
    rewritten = change.deleted_rows - updated
    if min(inserted, updated, rewritten) < 0:  # the table contains a key more than once
        return change.rows
    return RowCounts(inserted=inserted, updated=updated, rewritten=rewritten, known_by="keys of the input")


def deleted_row_counts(change: TableChange) -> RowCounts | None:
    """Return the row counts of a run that only deleted rows, so that its new files contain unchanged rows.

    No row of the table may have been deleted in place before: the counts of files include such rows.
    """
    removed = change.deleted_rows - change.added_rows
    if change.created or change.deletes_by_value or not change.added_rows or removed < 0:
        return None
    return RowCounts(removed=removed, rewritten=change.added_rows, known_by="deletes alone")


def merge_on_read_counts(added: int, deleted: int) -> RowCounts:
    """Return the row counts of a run that deleted rows in place and rewrote no file."""
    updated = min(added, deleted)
    return RowCounts(inserted=added - updated, updated=updated, removed=deleted - updated, known_by="deletes in place")


def compared_row_counts(before: Counter[Hashable], after: Counter[Hashable]) -> RowCounts:
    """Return the row counts from a comparison of the rows of removed files with those of added files.

    Each missing old row forms an update with a new one. The rows left over were removed or inserted.
    """
    kept = (before & after).total()
    old, new = before.total() - kept, after.total() - kept
    updated = min(old, new)
    return RowCounts(
        inserted=new - updated, updated=updated, removed=old - updated, rewritten=kept, known_by="rows compared"
    )
