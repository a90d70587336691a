"""The rows that a run adds, changes and removes, by table."""

from dataclasses import dataclass

from sluice.contracts.run import RunResult
from sluice.presentation.changes import describe_change, describe_rows_after
from sluice.publishing.change_summary import known_row_numbers
from sluice.publishing.quarantine_tables import is_quarantine_table


@dataclass(frozen=True)
class TableNumbers:
    """Changes of one table. A number is None if metadata and files do not show it."""

    table: str
    added: int | None
    removed: int | None
    changed: int | None
    after: int | None
    """Number of rows of the table after the run."""
    shown_after: str
    """The same for people: `1,200`, or `dropped`."""
    sentence: str
    created: bool
    is_quarantine: bool
    hint: str


def table_numbers(result: RunResult) -> list[TableNumbers]:
    """Return the changes of a run, quarantine tables last."""
    numbers = []
    for name, change in result.tables.items():
        known = known_row_numbers(change)
        numbers.append(
            TableNumbers(
                table=name,
                added=known.inserted if known else None,
                removed=known.removed + known.replaced if known else None,
                changed=known.updated if known else None,
                after=change.total_rows,
                shown_after=describe_rows_after(change),
                sentence=describe_change(change),
                created=change.created,
                is_quarantine=is_quarantine_table(name),
                hint=change.hint,
            )
        )
    return sorted(numbers, key=lambda each: each.is_quarantine)
