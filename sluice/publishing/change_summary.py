"""Summary of the changes of a run: rows added, updated, replaced and removed, new and dropped tables.

The terminal, the Web UI, Slack, markdown and JSON all use these numbers.
"""

from collections.abc import Mapping

from sluice.contracts.table_changes import ChangeSummary, RowNumbers, TableChange
from sluice.publishing.quarantine_tables import is_quarantine_table


def known_row_numbers(change: TableChange) -> RowNumbers | None:
    """Return the numbers of rows that a run changed in a table, or None if metadata and files do not show them.

    For a roll-back, they are the difference in rows.
    """
    if change.operation == "replace":  # a compaction: the same rows in other files
        return RowNumbers()
    if change.rows:
        return change.rows
    if change.created:  # rows that the run added and deleted again were never on main
        return RowNumbers(inserted=max(0, change.added_rows - change.deleted_rows))
    if change.deletes_by_value or (change.added_rows and change.deleted_rows):
        return None
    return RowNumbers(inserted=change.added_rows, removed=change.deleted_rows)


def summarize_changes(tables: Mapping[str, TableChange]) -> ChangeSummary:
    """Return the totals over the tables that a run changes.

    Quarantine tables count separately, because a bad row is not a row that the run added to its table.
    """
    numbers = {name: known_row_numbers(change) for name, change in tables.items()}
    data = {name: each for name, each in numbers.items() if not is_quarantine_table(name)}
    known = [each for each in data.values() if each]
    quarantine = [each for name, each in numbers.items() if each and name not in data]
    return ChangeSummary(
        tables=len(data),
        added=sum(each.inserted for each in known),
        updated=sum(each.updated for each in known),
        replaced=sum(each.replaced for each in known),
        removed=sum(each.removed for each in known),
        quarantined=sum(each.inserted for each in quarantine),
        left_quarantine=sum(each.removed for each in quarantine),
        new_tables=[name for name, change in tables.items() if change.created],
        dropped_tables=[name for name, change in tables.items() if change.operation == "drop"],
        restored_tables=[name for name, change in tables.items() if change.operation == "restore"],
        uncounted_tables=[name for name, each in data.items() if each is None],
    )
