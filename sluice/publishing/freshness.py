"""Decide whether a table is late: by a schedule, by a landing zone, or by the usual time between publications."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median_high

from sluice.contracts.schedules import MissedStarts
from sluice.durations import format_roughly
from sluice.sizes import format_count
from sluice.times import format_time

_GRACE = timedelta(minutes=5)
"""Delay of a scheduled start that is not reported. Temporal starts within seconds."""
_FEWEST_GAPS = 5
"""Minimum number of times between publications that show what is usual."""
_MOST_GAPS = 20
_SHORTEST_USUAL = timedelta(minutes=30)
"""Minimum usual time between publications. A shorter one is that of a backfill, or of a person who tries something."""
_TOLERATED = 2
"""Multiple of the usual time after which a table is late."""
_ABANDONED = 10
"""Multiple of the usual time after which no publication is expected any more."""
_DONE = ("published", "nothing new", "running")
"""States of a scheduled run that do not make a table late."""


@dataclass(frozen=True)
class ScheduledStarts:
    """Starts of a pipeline by a schedule that is not paused."""

    pipeline: str
    last: datetime | None
    """Scheduled time of the last start that happened."""
    state: str
    """State of the run of that start, as the list of schedules shows it."""
    next: datetime | None
    missed: MissedStarts
    """Starts that were missed after the last start."""


@dataclass(frozen=True)
class ExpectedFiles:
    """Maximum time between two files that a landing zone expects, in seconds."""

    pipeline: str
    every: float


@dataclass(frozen=True)
class Freshness:
    """Answer to the question whether a table is late."""

    published: datetime
    """Time of the latest publication."""
    is_late: bool
    reason: str
    """The rule that was applied, and by how much the table is late; empty if nothing is known."""


def judge_freshness(
    published: Sequence[datetime], schedules: Sequence[ScheduledStarts], zones: Sequence[ExpectedFiles], now: datetime
) -> Freshness:
    """Decide whether a table is late.

    Schedules and landing zones say when the table is due. If there are none, the times of its publications do.

    Args:
        published: times of the publications of the table, newest first; at least one.
        schedules: schedules of the pipelines that write the table.
        zones: landing zones of these pipelines that expect files at an interval.
    """
    latest = published[0]
    stated = [
        *(_by_schedule(each, latest, now) for each in schedules),
        *(_by_landing_zone(each, latest, now) for each in zones),
    ]
    known = [each for each in stated if each.reason]
    late = [each for each in known if each.is_late]
    return (late or known or [_by_usual_time(published, now)])[0]


def _by_schedule(starts: ScheduledStarts, latest: datetime, now: datetime) -> Freshness:
    name, last = starts.pipeline, starts.last
    if starts.next and starts.next + _GRACE < now:
        return _late(latest, now - starts.next, f"{name} should have started at {format_time(starts.next)}")
    if starts.missed.late:
        missed = format_count(starts.missed.late, "scheduled start")
        return Freshness(latest, True, f"late: {name} missed {missed} since {_time_or_deployment(last)}")
    if last and last > latest and starts.state != "forgotten by Temporal":
        if starts.state == "running" and not starts.missed.overlapping:
            return Freshness(latest, False, f"the run of {name} scheduled for {format_time(last)} is under way")
        if starts.state == "running":
            missed = format_count(starts.missed.overlapping, "later start")
            return _late(
                latest,
                now - last,
                f"the run of {name} scheduled for {format_time(last)} has not ended, and {missed} were skipped",
            )
        if starts.state not in _DONE:
            why = f"the run of {name} scheduled for {format_time(last)} ended {starts.state}"
            return _late(latest, now - last, why)
    return Freshness(latest, False, f"{name} starts next at {format_time(starts.next)}" if starts.next else "")


def _by_landing_zone(zone: ExpectedFiles, latest: datetime, now: datetime) -> Freshness:
    every, why = timedelta(seconds=zone.every), f"the landing zone of {zone.pipeline} expects a file every"
    why = f"{why} {format_roughly(zone.every)}, last {format_roughly(now - latest)} ago"
    over = now - latest - every
    return _late(latest, over, why) if over > timedelta() else Freshness(latest, False, why)


def _by_usual_time(published: Sequence[datetime], now: datetime) -> Freshness:
    """Compare the time since the latest publication with the median, and with the longest, of the times between."""
    latest = published[0]
    gaps = [later - earlier for later, earlier in pairwise(published)][:_MOST_GAPS]
    usual = median_high(gaps) if len(gaps) >= _FEWEST_GAPS else timedelta()
    if usual < _SHORTEST_USUAL:
        return Freshness(latest, False, "")
    age = now - latest
    why = f"usually every {format_roughly(usual)}, last {format_roughly(age)} ago"
    if age > _ABANDONED * usual:
        return Freshness(latest, False, f"{why}: no longer expected")
    is_late = age > max(_TOLERATED * usual, *gaps)
    return _late(latest, age - usual, why) if is_late else Freshness(latest, False, why)


def _late(latest: datetime, over: timedelta, why: str) -> Freshness:
    return Freshness(latest, True, f"late by {format_roughly(over)}: {why}")


def _time_or_deployment(last: datetime | None) -> str:
    return format_time(last) if last else "it was deployed"
