"""The `schedule` of a pipeline, which starts it without a person. The terms are those of Temporal's schedules."""

from functools import cache
from typing import Annotated, Literal

from pydantic import AfterValidator

from sluice.base_model import StrictModel
from sluice.durations import Duration, format_duration
from sluice.pipeline.cron import parse_cron
from sluice.pipeline.time_zones import known_zones, unknown_zone

Overlap = Literal["skip", "buffer_one", "buffer_all", "cancel_other", "allow_all"]
"""Reaction to a start time at which the previous run has not ended. Temporal's `terminate_other` is not supported: it
would end the workflow that waits for the run, not the run."""
_SHORTEST_CATCH_UP = 10.0
"""Minimum `catch_up`, in seconds: Temporal accepts no shorter window."""


@cache
def _zones() -> frozenset[str]:
    return frozenset(name for name in known_zones() if "/" in name or name in ("UTC", "GMT"))


def _cron(text: str) -> str:
    parse_cron(text)
    return " ".join(text.lower().split())


def _zone(name: str) -> str:
    if name not in _zones():
        raise ValueError(unknown_zone(name, _zones(), "UTC"))
    return name


def _catch_up(value: float) -> float:
    if value < _SHORTEST_CATCH_UP:
        raise ValueError(f"{format_duration(value)} is too short: a missed start is noticed within 10s at the earliest")
    return value


class Schedule(StrictModel):
    """The times at which a pipeline is started."""

    cron: Annotated[str, AfterValidator(_cron)]
    """Five fields: minute, hour, day of the month, month, day of the week."""
    zone: Annotated[str, AfterValidator(_zone)] = "UTC"
    """The time zone of these fields, and of `{{ scheduled_for }}`."""
    overlap: Overlap = "skip"
    catch_up: Annotated[Duration, AfterValidator(_catch_up)] = 24 * 3600.0
    """Maximum delay of a start that was missed because Temporal was unavailable, in seconds."""
    pause_on: Literal["failure"] | None = None
    """`failure`: the schedule pauses after a run that is neither published nor cancelled, unless main has its input."""

    def properties(self) -> dict[str, str]:
        """Return the settings as text, by name, so that a person can compare two schedules."""
        return {
            "cron": self.cron,
            "zone": self.zone,
            "overlap": self.overlap,
            "catch_up": format_duration(self.catch_up),
            "pause_on": self.pause_on or "nothing",
        }
