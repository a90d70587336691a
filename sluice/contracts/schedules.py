"""Messages of `StartScheduled`, the workflow that a schedule starts, and of its activities."""

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.contracts.starting import EndedRun, PipelineText

ENDED_MEMO = "sluice.ended"
"""Key of the memo of `StartScheduled` with the end of its run, which lists of schedules show."""
MISSED_MEMO = "sluice.missed"
"""Key of the memo of `StartScheduled` with the starts that its schedule had missed when it began.

People get a message about each missed start once.
"""
SET_MEMO = "sluice.set"
"""Key of the memo of a schedule with the set that it was deployed with."""


class StartScheduledInput(WireMessage):
    """Input of the workflow `StartScheduled`, as `deploy` applied it."""

    installation: str
    name: str
    """Name of the pipeline."""
    pipeline: PipelineText
    zone: str
    """Time zone of the scheduled time."""
    pause_on_failure: bool = False
    set_name: str = ""
    """Set that it was deployed with. `deploy` removes items from its own set only."""
    deployed_from: str = ""
    """Folder that was deployed."""
    properties: dict[str, str] = Field(default_factory=dict)
    """Properties that the next `deploy` compares and that people see."""


class MissedStarts(WireMessage):
    """Numbers of starts that a schedule has missed since it was made."""

    late: int = 0
    """Starts missed because Temporal was unavailable for longer than `catch_up`."""
    overlapping: int = 0
    """Starts missed because the previous run had not ended."""

    def since(self, earlier: "MissedStarts") -> "MissedStarts":
        """Return the numbers of starts that were missed after an earlier count."""
        return MissedStarts(
            late=max(self.late - earlier.late, 0), overlapping=max(self.overlapping - earlier.overlapping, 0)
        )


class InspectScheduleInput(WireMessage):
    """Input of `inspect_schedule`: the start that inspects its schedule."""

    schedule_id: str
    workflow_id: str
    zone: str
    scheduled_for: str
    """Scheduled time in ISO 8601, in any time zone."""


class ScheduledStart(WireMessage):
    """Result of `inspect_schedule`."""

    scheduled_for: str
    """Scheduled time in ISO 8601, in the time zone of the schedule."""
    missed: MissedStarts = MissedStarts()
    missed_before: MissedStarts = MissedStarts()
    """Missed starts that the previous start had seen."""


class PauseScheduleInput(WireMessage):
    """Input of `pause_schedule`: pause a schedule whose run was not published."""

    schedule_id: str
    note: str


class ScheduleNotice(WireMessage):
    """Input of `notify_schedule`: a message to people about a schedule."""

    pipeline: str
    missed: MissedStarts = MissedStarts()
    ended: EndedRun | None = None
    """End of the run of a start, if no run reports it to people itself."""
    paused: bool = False
