"""The history of a table: its verdicts by run, and its number of rows after each publication."""

from collections.abc import Sequence
from dataclasses import dataclass

from runtime.quarantine.quarantined_rows import duckdb_text
from runtime.run.listed_run import ListedRun
from sluice.contracts.lake_queries import QueryRows
from sluice.contracts.run import RunResult
from sluice.presentation.decisions import describe_decisions
from sluice.times import format_time
from web.audit.verdicts import LOOKS, Look
from web.run.changes import TableNumbers, table_numbers

_RUNS = 30
"""Number of runs in the heat map."""


def verdicts_query(table: str) -> str:
    """Return the query for the verdicts on a table in its latest runs, oldest run first."""
    of_table = f"table_name = {duckdb_text(table)}"
    return (
        "WITH latest AS (SELECT run_id, max(ended_at) AS ended FROM results "
        f"WHERE {of_table} GROUP BY run_id ORDER BY ended DESC LIMIT {_RUNS}) "
        "SELECT run_id, workflow_id, strftime(ended, '%Y-%m-%dT%H:%M:%S+00:00'), outcome, check_name, "
        "coalesce(nullif(array_to_string(columns, ', '), ''), check_label, ''), verdict, observed "
        f"FROM results JOIN latest USING (run_id) WHERE {of_table} ORDER BY ended, check_name"
    )


@dataclass(frozen=True)
class HeatCell:
    """The verdict of one check in one run."""

    look: Look
    title: str


@dataclass(frozen=True)
class HeatMap:
    """Verdicts by check and run, the oldest run first."""

    runs: list[tuple[str, str, str]]
    """Address, title and outcome of each run."""
    checks: list[tuple[str, list[HeatCell]]]


def heat_map(answer: QueryRows) -> HeatMap:
    """Return the heat map of the answer to `verdicts_query`."""
    runs: dict[str, tuple[str, str, str]] = {}
    verdicts: dict[str, dict[str, HeatCell]] = {}
    for run_id, workflow_id, ended, outcome, kind, about, verdict, observed in answer.rows:
        when = format_time(ended)
        runs.setdefault(run_id, (f"/runs/{workflow_id}/{run_id}", f"{when}: {outcome}", outcome))
        name = f"{kind}({about})" if about else kind
        look = LOOKS.get(verdict, "notrun")
        shown = "" if look == "passed" else f", observed {observed}"
        verdicts.setdefault(name, {})[run_id] = HeatCell(look, f"{when}: {look}{shown}")
    absent = HeatCell("notrun", "not run")
    return HeatMap(
        runs=list(runs.values()),
        checks=[(name, [of_run.get(run, absent) for run in runs]) for name, of_run in sorted(verdicts.items())],
    )


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
