"""Freshness of the tables that runs published, from what Temporal knows. No lake is read."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from runtime.run.listed_run import ListedRun
from runtime.schedules.list_schedules import ListedSchedule
from sluice.contracts.arrivals import ZoneStatus
from sluice.publishing.freshness import ExpectedFiles, Freshness, ScheduledStarts, judge_freshness
from sluice.publishing.quarantine_tables import is_quarantine_table

MOST_RUNS = 500
"""Maximum number of published runs that are read to find the latest ones of each table."""


def published_at(run: ListedRun) -> datetime:
    """Return the time of the publication by a published run."""
    return run.closed or run.started


def in_effect(runs: Sequence[ListedRun]) -> list[ListedRun]:
    """Return the runs without roll-backs and without those that were rolled back: main does not have their rows.

    Args:
        runs: published runs, newest first, so that the roll-back of a roll-back comes before it.
    """
    taken_back: set[str] = set()
    for run in runs:
        if run.run_id not in taken_back:
            taken_back.update(run.rolls_back)
    return [run for run in runs if not run.rolls_back and run.run_id not in taken_back]


def table_freshness(
    runs: Iterable[ListedRun], schedules: Sequence[ListedSchedule], zones: Sequence[ZoneStatus], now: datetime
) -> dict[str, Freshness]:
    """Return the freshness of each table that a pipeline still writes. Tables of bad rows are never due.

    Args:
        runs: published runs, in any order.
    """
    ordered = in_effect(sorted({run.run_id: run for run in runs}.values(), key=published_at, reverse=True))
    newest: dict[str, ListedRun] = {}
    for run in ordered:
        newest.setdefault(run.pipeline, run)
    writers: dict[str, set[str]] = {}
    for pipeline, run in newest.items():  # a table that its pipeline no longer writes is not late
        for table in run.tables:
            writers.setdefault(table, set()).add(pipeline)
    return {
        table: judge_freshness(
            [published_at(run) for run in ordered if table in run.tables],
            _scheduled(schedules, pipelines),
            _expected(zones, pipelines),
            now,
        )
        for table, pipelines in writers.items()
        if not is_quarantine_table(table)
    }


def _scheduled(schedules: Sequence[ListedSchedule], pipelines: set[str]) -> list[ScheduledStarts]:
    return [
        ScheduledStarts(each.given.name, each.last, each.state, each.next, each.missed_since_last)
        for each in schedules
        if each.given.name in pipelines and each.paused is None
    ]


def _expected(zones: Sequence[ZoneStatus], pipelines: set[str]) -> list[ExpectedFiles]:
    return [
        ExpectedFiles(each.name, each.expect)
        for each in zones
        if each.name in pipelines and each.expect is not None and not each.paused
    ]
