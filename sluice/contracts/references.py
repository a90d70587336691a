"""Which run, attempt and branch an activity works for, and which run of a scheduler started it."""

from pydantic import Field

from sluice.base_model import Model
from sluice.identifiers import attempt_branch

TARGET_HEADER = "sluice-target"
"""The header of activities of a run that publishes to another branch than main: the name of that branch."""


class RunRef(Model):
    """The run and the attempt that an activity works for."""

    run_id: str
    workflow_id: str
    pipeline: str
    label: str
    attempt: int
    partition: str = ""
    """The partition that the run loads, or the time that it is scheduled for; empty where it has neither."""

    @property
    def branch(self) -> str:
        """The branch of this attempt: no other attempt of any run writes on it."""
        return attempt_branch(self.label, self.run_id, self.attempt)


class BranchRef(Model):
    """A branch created for one attempt, at a recorded hash of main."""

    name: str
    base: str
    catalog_id: str  # the catalog's identity
    sorted_tables: list[str] = Field(default_factory=list)
    """The tables of which Spark sorts what is written to them, over all tasks."""
    commit_timeout: float = 5.0
    """How long, in seconds, the catalog works on a commit at most: after that, a publish in flight is decided."""
    guarantee: str = "atomic"
    """What holds of the publish when a server crashes in its middle: `atomic`, `checked` or `one by one`."""
    can_be_fenced: bool = True
    """Whether deleting it stops a job that still writes on it: else no other attempt may follow."""


class BranchRequest(Model):
    """What the inputs of local activities that create a branch have in common."""

    requested_at: float = 0.0
    """When the workflow task began that asks for it, by Temporal's clock, in seconds since 1970; 0 if that is unknown.

    A worker that was paused may get an old task, which Temporal has given to another worker since.
    """


class LineageParent(Model):
    """The OpenLineage run that started this one, such as a task of a scheduler."""

    namespace: str
    name: str
    """The name of its job in the namespace."""
    run_id: str
    """Its run id, a UUID."""
