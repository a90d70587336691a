"""How many rows a run inserted, updated and removed, which Iceberg's metadata alone does not say.

A data file is written once. To change one row, an engine writes the rows beside it again, so counts by files call them
removed and added. What was carried along in a rewritten file was not changed.
"""

from collections import Counter
from collections.abc import Hashable

from sluice.contracts.write import RowCounts, TableChange
from sluice.pipeline.write_modes import WriteMode


def written_row_counts(change: TableChange, mode: WriteMode, rows_merged: int | None = None) -> RowCounts | None:
    """Return what a verified write did to rows, if its mode tells more than the change itself.

    Args:
        rows_merged: the rows that a merge was given, each with keys of its own.
    """
    if change.created or change.deletes_by_value or not change.deleted_rows:
        return change.rows
    if mode.replaces_rows:
        return RowCounts(inserted=change.added_rows, replaced=change.deleted_rows, known_by="replacement")
    if rows_merged is None:
        return change.rows
    # A merge removes no row, so what the table gained was inserted, and the other rows of the input matched one each.
    inserted = change.added_rows - change.deleted_rows
    updated = rows_merged - inserted
    rewritten = change.deleted_rows - updated
    if min(inserted, updated, rewritten) < 0:  # a key that the table holds more than once
        return change.rows
    return RowCounts(inserted=inserted, updated=updated, rewritten=rewritten, known_by="keys of the input")


def deleted_row_counts(change: TableChange) -> RowCounts | None:
    """Return what became of rows where a run only deleted: what its new files hold was rewritten unchanged.

    The change must be of a table in which no row was deleted in place before: those are in the counts of files.
    """
    removed = change.deleted_rows - change.added_rows
    if change.created or change.deletes_by_value or not change.added_rows or removed < 0:
        return None
    return RowCounts(removed=removed, rewritten=change.added_rows, known_by="deletes alone")


def merge_on_read_counts(added: int, deleted: int) -> RowCounts:
    """Return what a run did that deleted rows in place and rewrote no file."""
    updated = min(added, deleted)
    return RowCounts(inserted=added - updated, updated=updated, removed=deleted - updated, known_by="deletes in place")


def compared_row_counts(before: Counter[Hashable], after: Counter[Hashable]) -> RowCounts:
    """Return what became of rows, from those of the removed files and those of the added ones.

    An old row that is no more and a new one are an update; what is left over was removed or inserted.
    """
    kept = (before & after).total()
    old, new = before.total() - kept, after.total() - kept
    updated = min(old, new)
    return RowCounts(
        inserted=new - updated, updated=updated, removed=old - updated, rewritten=kept, known_by="rows compared"
    )
