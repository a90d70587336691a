"""What a run did to a table, as people say it: `50 inserted, 50 updated (92 rewritten unchanged)`."""

from sluice.contracts.run import RunResult
from sluice.contracts.write import RowCounts, TableChange


def describe_change(change: TableChange) -> str:
    """Return how many rows a run inserted, updated, replaced and removed, or what is not known of it."""
    if change.operation == "replace":
        return f"{_files(change.removed_files)} into {change.added_files:,}, rows unchanged"
    if change.rows:
        return _describe_counts(change.rows)
    if change.deletes_by_value:
        return f"{change.added_rows:,} inserted; rows deleted by value, which no metadata counts"
    if change.created or not change.deleted_rows:
        return f"{change.added_rows:,} inserted" if change.added_rows else "no row changed"
    if not change.added_rows:
        return f"{change.deleted_rows:,} removed"
    return (
        f"files of {change.deleted_rows:,} rows rewritten into {change.added_rows:,}; "
        "how many of them changed is not known"
    )


def rows_heading(result: RunResult) -> str:
    """Return what the number of rows in the end is called: those of the branch, where main has not got them."""
    return "rows after" if result.outcome in (None, "published") else "rows on the branch"


def _describe_counts(rows: RowCounts) -> str:
    if rows.replaced:
        return f"{rows.replaced:,} replaced by {rows.inserted:,}"
    counts = {"inserted": rows.inserted, "updated": rows.updated, "removed": rows.removed}
    parts = [f"{count:,} {what}" for what, count in counts.items() if count]
    carried = f" ({rows.rewritten:,} rewritten unchanged)" if rows.rewritten else ""
    return (", ".join(parts) or "no row changed") + carried


def _files(count: int) -> str:
    return f"{count:,} file{'s' * (count != 1)}"
