"""Messages about the runs that the landing zones of an installation may have at a time, all together."""

from pydantic import Field

from sluice.base_model import Model

GRANT_SIGNAL = "start_batch"
"""The signal by which a landing zone learns that it may start the run of a batch."""


def arrival_runs_id(installation: str, task_queue: str) -> str:
    """Return the workflow id of what limits the runs of all landing zones of an installation and a task queue.

    The task queue is part of it: otherwise landing zones would wait for a workflow on a queue that no worker serves.
    """
    return f"sluice-arrival-runs-{installation}-{task_queue}"


class WantedRun(Model):
    """A batch that could be loaded now."""

    batch: str
    since: float
    """When the batch was made, in seconds since 1970."""
    run: str
    """The workflow id of what would run it."""


class ZoneRuns(Model):
    """What one landing zone runs, and what it would start: each report takes the place of the one before."""

    zone: str
    """The workflow id of the landing zone."""
    at: float
    """When it was so, in seconds since 1970: an older report that comes late changes nothing."""
    answered: int
    """The number of the latest grant that the zone has followed or declined."""
    running: list[str] = Field(default_factory=list)
    """The workflow ids of what runs its batches."""
    wanted: list[WantedRun] = Field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether the zone runs nothing, and wants nothing."""
        return not self.running and not self.wanted


class RunGrant(Model):
    """The permission to start the run of a batch."""

    number: int
    """Later grants have higher ones, also after the workflow that gives them was started again."""
    batch: str


class OpenGrant(Model):
    """A grant that its landing zone has not answered."""

    zone: str
    grant: RunGrant
    run: str
    at: float


class RunSlotsState(Model):
    """The input of the workflow `ArrivalRuns`, and what it continues with."""

    limit: int = 1
    zones: list[ZoneRuns] = Field(default_factory=list)
    grants: list[OpenGrant] = Field(default_factory=list)
    latest: int = 0
    """The number of the latest grant."""


class WorkflowIds(Model):
    """Ids of workflows: the input and the result of `find_ended_workflows`."""

    ids: list[str]
