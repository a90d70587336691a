"""Stages of a run, with the time that it spent in each."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from sluice.contracts.run import Stage, StageEvent

_MAX_EVENTS = 50
_LONGEST_NOTE = 1_000
"""Maximum number of stage events in the status, and maximum length of the note of each, in characters."""


class StageLog:
    """The present stage of a run, its latest stages, and the seconds spent in each."""

    def __init__(self) -> None:
        self.stage: Stage = "starting"
        self.events: list[StageEvent] = []
        self.timings: dict[str, float] = {}
        """The seconds in each ended stage by name, and under `total` those since the start of the run."""
        self._stage_start = self._run_start = workflow.now()

    def enter(self, stage: Stage, note: str) -> None:
        """Begin a stage, and add the time of the previous stage to its total."""
        now = workflow.now()
        timings = dict(self.timings)  # the result of the run contains the previous one
        if self.stage != "starting":
            spent = timings.get(self.stage, 0.0) + (now - self._stage_start).total_seconds()
            timings[self.stage] = round(spent, 3)
        timings["total"] = round((now - self._run_start).total_seconds(), 3)
        self.timings = timings
        self.stage, self._stage_start = stage, now
        event = StageEvent(stage=stage, at=now.isoformat(), note=note[:_LONGEST_NOTE])
        self.events = [*self.events, event][-_MAX_EVENTS:]
