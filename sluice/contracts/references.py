"""References to the run, attempt and branch of an activity, and to the scheduler's run that started it."""

from abc import abstractmethod

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.identifiers import attempt_branch

TARGET_HEADER = "sluice-target"
"""Header of activities of a run that publishes to a branch other than main; its value is the branch's name."""


class RunRef(WireMessage):
    """The run and the attempt that an activity works for."""

    run_id: str
    workflow_id: str
    pipeline: str
    label: str
    attempt: int
    partition: str = ""
    """Partition that the run loads, or its scheduled time; empty if it has neither."""

    @property
    def branch(self) -> str:
        """Branch of this attempt. No other attempt of any run writes to it."""
        return attempt_branch(self.label, self.run_id, self.attempt)


class BranchRef(WireMessage):
    """A branch created for one attempt, at a recorded hash of main."""

    name: str
    base: str
    catalog_id: str  # the catalog's identity
    sorted_tables: list[str] = Field(default_factory=list)
    """Tables for which Spark sorts the written rows over all tasks."""
    commit_timeout: float = 5.0
    """Maximum time that the catalog works on a commit, in seconds. By then, a publish has succeeded or failed."""
    guarantee: str = "atomic"
    """Guarantee if a server crashes during the publish: `atomic`, `checked` or `one by one`."""
    can_be_fenced: bool = True
    """True if deleting the branch stops a job that still writes to it. Otherwise, no other attempt may follow."""


class CatalogMessage(WireMessage):
    """Input of an activity that may work only on the catalog with which the run began.

    Every worker compares the catalogs before the activity begins (`activities/catalog_identity.py`).
    """

    @property
    @abstractmethod
    def expected_catalog(self) -> str | None:
        """Identity of that catalog; None if the run has not recorded one yet."""


class CatalogIdMessage(CatalogMessage):
    """Input that names the identity of the catalog itself."""

    catalog_id: str | None = None
    """Identity of the catalog with which the run began; None if the run has not recorded one yet."""

    @property
    def expected_catalog(self) -> str | None:
        """Identity in the message."""
        return self.catalog_id


class BranchMessage(CatalogMessage):
    """Input about the branch of an attempt, which names its catalog."""

    branch: BranchRef

    @property
    def expected_catalog(self) -> str | None:
        """Identity of the catalog in which the branch was created."""
        return self.branch.catalog_id


class BranchRequest(WireMessage):
    """Common fields of the inputs of local activities that create a branch."""

    requested_at: float = 0.0
    """Time when the requesting workflow task began, by Temporal's clock, in seconds since 1970; 0 if unknown.

    A worker that was paused may run an old task that Temporal has given to another worker since.
    """


class LineageParent(WireMessage):
    """OpenLineage run that started this one, such as a task of a scheduler."""

    namespace: str
    name: str
    """Name of its job in the namespace."""
    run_id: str
    """Run id, a UUID."""
