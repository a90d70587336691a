"""The strip of the last day: one mark for each run, in the hour in which it ended."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from runtime.run.listed_run import ListedRun
from sluice.sizes import format_count
from sluice.times import format_time

_HOURS = 25
"""Number of hours in the strip: 24 full hours, and the present one."""
_MOST_MARKS = 12
"""Maximum number of marks in one hour. Further runs of the hour count as one mark with their number."""
_STEP = 10


@dataclass(frozen=True)
class Mark:
    """One mark of the strip."""

    x: float
    """Position from the left, in percent."""
    y: int
    """Position from the top, in pixels."""
    outcome: str
    title: str
    link: str
    more: int = 0
    """Number of further runs that the mark stands for."""


@dataclass(frozen=True)
class LastDay:
    """The strip, its labels and its counts."""

    marks: list[Mark]
    labels: list[tuple[float, str]]
    """Positions, in percent, and the hours at them."""
    counts: dict[str, int]
    """Number of runs by outcome."""
    height: int


def last_day(ended: Sequence[ListedRun], now: datetime) -> LastDay:
    """Return the strip of the runs that ended in the 24 hours before a time."""
    first = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=_HOURS - 1)
    by_hour: dict[int, list[ListedRun]] = {}
    for run in ended:
        if run.closed and run.closed >= first:
            by_hour.setdefault(int((run.closed - first).total_seconds() // 3600), []).append(run)
    height = _STEP * (min(_MOST_MARKS, max(map(len, by_hour.values()), default=1)) + 3)
    marks = [
        _mark(run, hour, number, height, max(0, len(runs) - _MOST_MARKS))
        for hour, runs in by_hour.items()
        for number, run in enumerate(sorted(runs, key=_trouble_last)[-_MOST_MARKS:])
    ]
    hours = [(hour, first + timedelta(hours=hour)) for hour in range(0, _HOURS - 1, 6)]
    return LastDay(
        marks=marks,
        labels=[(_x(hour), f"{time:%H}:00") for hour, time in hours],
        counts=dict(Counter(run.outcome or run.state for run in ended)),
        height=height,
    )


def _mark(run: ListedRun, hour: int, number: int, height: int, more: int) -> Mark:
    outcome = run.outcome or run.state
    more = more if number == 0 else 0
    title = f"{run.pipeline}: {outcome}, {format_time(run.closed or run.started)}"
    return Mark(
        x=_x(hour),
        y=height - 2 * _STEP - number * _STEP,
        outcome=outcome,
        title=f"{title}; {format_count(more, 'more run')} ended in this hour" if more else title,
        link=f"/runs/{run.workflow_id}/{run.run_id}",
        more=more,
    )


def _trouble_last(run: ListedRun) -> bool:
    """Sort runs that were published before all others, so that a full hour never leaves those out."""
    return run.outcome not in ("published", "skipped", "checked")


def _x(hour: int) -> float:
    return round((hour + 0.5) / _HOURS * 100, 2)
