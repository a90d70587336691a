"""The messages of `StartScheduled`, the workflow that a schedule starts, and of its activities."""

from pydantic import Field

from sluice.base_model import Model
from sluice.contracts.starting import EndedRun, PipelineText

ENDED_MEMO = "sluice.ended"
"""The memo of `StartScheduled` with how its run ended, by which lists of schedules say it."""
MISSED_MEMO = "sluice.missed"
"""The memo of `StartScheduled` with what its schedule had missed when it began: people are told of each start once."""
SET_MEMO = "sluice.set"
"""The memo of a schedule with the set of things that it was deployed with."""


def schedule_id(installation: str, pipeline: str) -> str:
    """Return the id of the schedule of a pipeline: one for each installation."""
    return f"sluice-{installation}-schedule-{pipeline}"


class StartScheduledInput(Model):
    """Input of the workflow `StartScheduled`: what `deploy` applied."""

    installation: str
    name: str
    """The pipeline's name."""
    pipeline: PipelineText
    zone: str
    """The time zone of the scheduled time."""
    pause_on_failure: bool = False
    set_name: str = ""
    """The set of things that it was deployed with: `deploy` removes from its own set alone."""
    deployed_from: str = ""
    """The folder that was deployed."""
    properties: dict[str, str] = Field(default_factory=dict)
    """What the next `deploy` compares, and what people see."""


class MissedStarts(Model):
    """Starts of a schedule that did not happen, since it was made."""

    late: int = 0
    """Temporal was away for longer than `catch_up`."""
    overlapping: int = 0
    """The run before had not ended."""

    def since(self, earlier: "MissedStarts") -> "MissedStarts":
        """Return those that are in none of the earlier ones."""
        return MissedStarts(
            late=max(self.late - earlier.late, 0), overlapping=max(self.overlapping - earlier.overlapping, 0)
        )


class InspectScheduleInput(Model):
    """Input of `inspect_schedule`: the start that looks at its schedule."""

    schedule_id: str
    workflow_id: str
    zone: str
    scheduled_for: str
    """In ISO 8601, in any time zone."""


class ScheduledStart(Model):
    """Result of `inspect_schedule`."""

    scheduled_for: str
    """In ISO 8601, in the time zone of the schedule."""
    missed: MissedStarts = MissedStarts()
    missed_before: MissedStarts = MissedStarts()
    """Those that the start before had seen."""


class PauseScheduleInput(Model):
    """Input of `pause_schedule`: its run was not published."""

    schedule_id: str
    note: str


class ScheduleNotice(Model):
    """Input of `notify_schedule`: what people are to know of a schedule."""

    pipeline: str
    missed: MissedStarts = MissedStarts()
    ended: EndedRun | None = None
    """How the run of a start ended, where no run says it to people itself."""
    paused: bool = False
