"""Describe the changes of a run to tables, for people: `50 inserted, 50 updated (92 rewritten unchanged)`."""

from collections.abc import Mapping, Sequence

from sluice.contracts.run import RunResult
from sluice.contracts.table_changes import ChangeSummary, RowNumbers, TableChange
from sluice.publishing.change_summary import known_row_numbers, summarize_changes
from sluice.sizes import format_count

_NAMED = 5
"""Maximum number of tables of one kind that a summary names."""


def describe_rows_after(change: TableChange) -> str:
    """Return the number of rows that a table has after a run, or the reason why there is no number."""
    if change.operation == "drop":
        return "dropped"
    return "?" if change.total_rows is None else f"{change.total_rows:,}"


def describe_change(change: TableChange) -> str:
    """Describe the rows that a run inserted, updated, replaced and removed, or the part that is not known."""
    if change.operation == "replace":
        return f"{_files(change.removed_files)} into {change.added_files:,}, rows unchanged"
    if change.operation == "restore":
        return _describe_restored(change)
    if numbers := known_row_numbers(change):
        return _describe_numbers(numbers)
    if change.deletes_by_value:
        return f"{change.added_rows:,} inserted; rows deleted by value, which metadata does not count"
    return (
        f"files of {change.deleted_rows:,} rows rewritten into {change.added_rows:,}; "
        "how many of them changed is not known"
    )


def describe_summary(result: RunResult) -> str:
    """Return the totals of a run: `3 tables: 1,200 rows added, 10 updated, 5 removed; new: nyc.flights`.

    Return an empty string if the run wrote nothing.
    """
    if not result.tables:
        return ""
    summary = result.summary or summarize_changes(result.tables)  # results of older runs have no summary
    named = {
        "new": summary.new_tables,
        "dropped": summary.dropped_tables,
        "restored": summary.restored_tables,
        "rows not counted": summary.uncounted_tables,
    }
    parts = [
        f"{format_count(summary.tables, 'table')}: {_describe_totals(summary)}",
        *(f"{what}: {_listed(tables)}" for what, tables in named.items() if tables),
        f"{format_count(summary.quarantined, 'bad row')} quarantined" if summary.quarantined else "",
        f"{format_count(summary.left_quarantine, 'row')} left quarantine" if summary.left_quarantine else "",
    ]
    return "; ".join(filter(None, parts))


def summary_heading(result: RunResult) -> str:
    """Return the heading of the totals: to merge, merged, or not merged."""
    return {None: "to merge", "published": "merged"}.get(result.outcome, "not merged")


def describe_guarantee(guarantee: str) -> str:
    """Describe the guarantee of a publish for a server crash in the middle of it; empty if it is not known."""
    meanings = {
        "atomic": "atomic: readers see the whole load or nothing of it, also after a crash of the catalog",
        "checked": "checked: one request for all tables; Sluice completes or undoes a merge that a crash interrupts",
        "one by one": (
            "one by one: readers may see some tables before the others; Sluice completes or undoes a merge that a "
            "crash interrupts"
        ),
    }
    return meanings.get(guarantee, guarantee)


def describe_kept_guarantee(result: RunResult) -> str:
    """Describe the guarantee of a run's publish; empty if a run that is atomic ended without a publish."""
    is_moot = result.outcome not in (None, "published") and result.guarantee == "atomic"
    return "" if is_moot else describe_guarantee(result.guarantee)


def describe_message(result: RunResult) -> str:
    """Return the pipeline's message for the merge commit, on one line; empty for the default message."""
    return " ".join(result.publish.message.split()) if result.outcome in (None, "published") else ""


def describe_metadata(result: RunResult) -> str:
    """Return the pipeline's metadata for the merge commit: `owner=film-office, ticket=FILM-42`."""
    entries = result.publish.metadata if result.outcome in (None, "published") else {}
    return ", ".join(f"{key}={value}" for key, value in entries.items())


def describe_release(result: RunResult) -> str:
    """Describe the quarantine that a run releases, and its repair by SQL: `run r1; repaired t.x: 3 updated`."""
    if not result.released:
        return ""
    changed = [f"{table}: {_describe_numbers(rows)}" for table, rows in result.repaired.items()]
    return f"the quarantine of run {result.released}" + (f"; repaired {'; '.join(changed)}" if changed else "")


def rows_heading(result: RunResult) -> str:
    """Return the label for the final row count: "rows on the branch" if the run was not merged, else "rows after"."""
    return "rows after" if result.outcome in (None, "published") else "rows on the branch"


def describe_row_counts(counts: Mapping[str, int]) -> str:
    """Describe the counts that are not 0: `1,200 rows added, 5 removed`. Return an empty string if all are 0."""
    parts = [f"{count:,} {what}" for what, count in counts.items() if count]
    if not parts:
        return ""
    number, what = parts[0].split(" ")
    return ", ".join([f"{number} row{'s' * (number != '1')} {what}", *parts[1:]])


def _describe_totals(summary: ChangeSummary) -> str:
    totals = {
        "added": summary.added,
        "updated": summary.updated,
        "replaced": summary.replaced,
        "removed": summary.removed,
    }
    changed = "changed" if summary.uncounted_tables or summary.restored_tables else "no row changed"
    return describe_row_counts(totals) or changed


def _describe_restored(change: TableChange) -> str:
    """Describe the difference in rows after a roll-back. It does not count the rows that change back."""
    difference = change.added_rows - change.deleted_rows
    if not difference:
        return "restored, as many rows as before"
    return f"restored, {format_count(abs(difference), 'row')} {'more' if difference > 0 else 'fewer'} than before"


def _describe_numbers(rows: RowNumbers) -> str:
    if rows.replaced:
        return f"{rows.replaced:,} replaced by {rows.inserted:,}"
    counts = {"inserted": rows.inserted, "updated": rows.updated, "removed": rows.removed}
    parts = [f"{count:,} {what}" for what, count in counts.items() if count]
    carried = f" ({rows.rewritten:,} rewritten unchanged)" if rows.rewritten else ""
    return (", ".join(parts) or "no row changed") + carried


def _listed(tables: Sequence[str]) -> str:
    more = [f"and {len(tables) - _NAMED:,} more"] if len(tables) > _NAMED else []
    return ", ".join([*tables[:_NAMED], *more])


def _files(count: int) -> str:
    return f"{count:,} file{'s' * (count != 1)}"
