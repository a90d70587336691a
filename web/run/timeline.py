"""The stages of a run in order, each with its duration."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sluice.contracts.run import StageEvent
from sluice.times import parse_time


@dataclass(frozen=True)
class TimelineEntry:
    """One stage."""

    at: str
    """Time of day at which the stage began."""
    stage: str
    note: str
    seconds: float
    start: float
    """Position of its bar from the left, in percent of the run."""
    width: float
    """Width of its bar, in percent of the run."""


def timeline(events: Sequence[StageEvent], end: datetime) -> list[TimelineEntry]:
    """Return the stages of a run.

    Args:
        end: end of the run, or the present time.
    """
    starts = [parse_time(event.at) for event in events]
    if not starts:
        return []
    ends = [*starts[1:], max(end, starts[-1])]
    whole = max((ends[-1] - starts[0]).total_seconds(), 1.0)
    return [
        TimelineEntry(
            at=event.at[11:19],
            stage=event.stage,
            note=event.note,
            seconds=(until - start).total_seconds(),
            start=round((start - starts[0]).total_seconds() / whole * 100, 2),
            width=max(round((until - start).total_seconds() / whole * 100, 2), 0.3),
        )
        for event, start, until in zip(events, starts, ends, strict=True)
        if event.stage != "ended"
    ]
