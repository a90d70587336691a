"""Messages about the limit on simultaneous runs, common to all landing zones of an installation."""

from pydantic import Field

from sluice.base_model import WireMessage

GRANT_SIGNAL = "start_batch"
"""Signal that permits a landing zone to start the run of a batch."""


def arrival_runs_id(installation: str, task_queue: str) -> str:
    """Return the id of the workflow that limits the runs of landing zones, for an installation and a task queue.

    The id contains the task queue. Otherwise, landing zones would wait for a workflow on a queue that no worker serves.
    """
    return f"sluice-arrival-runs-{installation}-{task_queue}"


class WantedRun(WireMessage):
    """A batch that could be loaded now."""

    batch: str
    since: float
    """Time when the batch was made, in seconds since 1970."""
    run: str
    """Id of the workflow that would run it."""


class ZoneRuns(WireMessage):
    """A landing zone's report of the batches that it runs and wants to run. It replaces the previous report."""

    zone: str
    """Workflow id of the landing zone."""
    at: float
    """Time of the report, in seconds since 1970. An older report that arrives late changes nothing."""
    answered: int
    """Number of the latest grant that the zone has followed or declined."""
    running: list[str] = Field(default_factory=list)
    """Ids of the workflows that run its batches."""
    wanted: list[WantedRun] = Field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """True if the zone runs nothing and wants nothing."""
        return not self.running and not self.wanted


class RunGrant(WireMessage):
    """Permission to start the run of a batch."""

    number: int
    """Serial number. Later grants have higher numbers, even after a restart of the workflow that gives them."""
    batch: str


class OpenGrant(WireMessage):
    """A grant that its landing zone has not answered."""

    zone: str
    grant: RunGrant
    run: str
    at: float


class RunSlotsState(WireMessage):
    """Input of the workflow `ArrivalRuns`, and its state when it continues as new."""

    limit: int = 1
    zones: list[ZoneRuns] = Field(default_factory=list)
    grants: list[OpenGrant] = Field(default_factory=list)
    latest: int = 0
    """Number of the latest grant."""


class WorkflowIds(WireMessage):
    """Ids of workflows: the input and the result of `find_ended_workflows`."""

    ids: list[str]
