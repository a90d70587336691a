"""The publications of a table, and its number of rows after each of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.run.listed_run import ListedRun
from sluice.contracts.run import RunResult
from sluice.presentation.decisions import describe_decisions
from sluice.times import format_time
from web.run.changes import TableNumbers, table_numbers


@dataclass(frozen=True)
class Publication:
    """A publication of a table."""

    run: ListedRun
    numbers: TableNumbers
    hash: str
    decided: str
    """The decisions of people about it; empty if nobody had to decide."""


def publications(table: str, results: Sequence[tuple[ListedRun, RunResult | None]]) -> list[Publication]:
    """Return the publications among ended runs that changed a table, newest first."""
    published = []
    for run, result in results:
        changes = {each.table: each for each in table_numbers(result)} if result else {}
        if result and result.main_after and table in changes:
            decided = describe_decisions(result.approval)
            published.append(Publication(run, changes[table], result.main_after, decided))
    return published


@dataclass(frozen=True)
class RowsPlot:
    """Number of rows after each publication, as a line in a box of 100 by 100."""

    points: list[tuple[float, float, str]]
    """Position from the left and from the top, in percent, and the title of each publication."""
    line: str
    highest: int


def rows_plot(published: Sequence[Publication]) -> RowsPlot | None:
    """Return the plot of a table's rows over time, or None for fewer than two publications with a known number."""
    known = [(each.run.closed or each.run.started, each.numbers.after) for each in reversed(published)]
    rows = [(time, after) for time, after in known if after is not None]
    if len(rows) < 2:
        return None
    first, highest = rows[0][0], max(after for _, after in rows) or 1
    whole = max((rows[-1][0] - first).total_seconds(), 1.0)
    points = [
        (
            round(2 + 96 * (time - first).total_seconds() / whole, 2),
            round(95 - 90 * after / highest, 2),
            f"{format_time(time)}: {after:,} rows",
        )
        for time, after in rows
    ]
    return RowsPlot(points, " ".join(f"{x},{y}" for x, y, _ in points), highest)
