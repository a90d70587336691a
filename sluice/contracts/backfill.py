"""Messages of `Backfill`: the runs of one pipeline over many partitions, a few at a time."""

from typing import Literal

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.causes import Cause
from sluice.contracts.references import CatalogIdMessage
from sluice.contracts.run import Outcome
from sluice.contracts.starting import EndedRun, PipelineText

PartitionState = Literal["waiting", "running", "published", "kept out", "failed", "cancelled", "skipped"]
MAX_WINDOW = 100


class PartitionNote(WireMessage):
    """Record of a partition whose data is not on main."""

    outcome: Outcome | Literal["refused"]
    cause: Cause | None = None
    reason: str = ""
    workflow_id: str = ""
    run_id: str = ""


class BackfillState(WireMessage):
    """State of a backfill. It is passed on when the workflow continues as new, and answers queries."""

    partitions: list[str]
    letters: str = ""
    """State of each partition as one letter, defined in `sluice/backfills/progress.py`; empty if all wait."""
    askers: dict[str, str] = Field(default_factory=dict)
    """Person who requested a partition, by partition, if it was not the starter of the backfill."""
    asked_at: dict[str, str] = Field(default_factory=dict)
    """Time when the run was requested, in ISO 8601, by running partition."""
    rechecked: list[str] = Field(default_factory=list)
    """Partitions that were published and run again. If main still has one, it stays `published`."""
    notes: dict[str, PartitionNote] = Field(default_factory=dict)
    """Reason why a partition is not on main, by partition; only the latest ones."""
    window: int = Field(default=4, ge=1, le=MAX_WINDOW)
    """Maximum number of partitions that run at a time."""
    in_order: bool = False
    """True if a partition runs only after all partitions before it are done."""
    stop_after: int = Field(default=3, ge=0)
    """Number of failures after which the backfill pauses; 0 for never."""
    failures: int = 0
    """Number of failures since the backfill was started or resumed."""
    paused: str = ""
    """Reason why it is paused; empty if it is not."""
    rows_added: int = 0


class JointPublish(WireMessage):
    """State of a backfill that publishes all partitions by one merge."""

    branch: str = ""
    """Branch that its partitions are published to; empty before it is created."""
    catalog_id: str = ""
    """Identity of the catalog in which the branch was created."""
    quarantine: str = ""
    """Name of the quarantined branch that combines all partitions; empty until each is on the backfill's branch."""
    is_under_way: bool = False
    """True while the partitions are combined and the run that publishes them is under way."""
    ended: EndedRun | None = None
    """End of this run, or the reason why it was not started; None before."""


class OpenBackfillInput(WireMessage):
    """Input of `open_backfill`."""

    pipeline: str
    """Name of the pipeline."""
    request: str
    """Digest of the pipeline's text and the partitions. The same request continues on a branch that was left behind."""


class DiscardBackfillInput(WireMessage):
    """Input of `discard_backfill`: delete the branches that ended backfills of a pipeline left behind."""

    pipeline: str


class CollectBackfillInput(CatalogIdMessage):
    """Input of `collect_backfill`."""

    branch: str
    catalog_id: str
    pipeline: PipelineText
    values: dict[str, str]
    """Values of the placeholders in the file, for all partitions together."""
    workflow_id: str
    run_id: str
    """Run id of the backfill. The quarantine records it and `workflow_id` as its run."""
    day: str
    """Day in the name of the quarantine, as `2026-01-31`."""
    expires: str
    """End of the retention of the quarantine, in ISO 8601."""


class BackfillBranch(WireMessage):
    """Branch of a backfill: the result of `open_backfill` and `collect_backfill`."""

    name: str
    catalog_id: str
    """Identity of the catalog that contains the branch."""


BACKFILL_WORKFLOW = "Backfill"
"""Type of the workflow of a backfill."""


class BackfillInput(WireMessage):
    """Input of the workflow `Backfill`."""

    pipeline: PipelineText
    name: str
    """Name of the pipeline."""
    starter: str
    """Person who started it."""
    again: bool = False
    """True if files that were published before may be published again."""
    over_younger: bool = False
    """True if partitions may be loaded that are older than the data on main."""
    progress: BackfillState
    together: JointPublish | None = None
    """State of `--publish together`; None if the partitions are published one by one."""
    keep: float = 0.0
    """Retention of partitions that were combined but not published, in seconds."""
    starts_per_run: int = Field(default=200, ge=1)
    """Number of run starts after which the workflow continues as new, so that its history stays short."""
    ask_again: float = Field(default=600, gt=0)
    """Interval at which the workflow checks the children that an earlier run of it started, in seconds."""


class AddPartitions(WireMessage):
    """Argument of the update `add`: the start of a backfill for a pipeline that already has one."""

    pipeline: PipelineText
    partitions: list[str]
    starter: str = ""
    """Person who adds them."""
    again: bool = False
    over_younger: bool = False
    in_order: bool = False
    """True if the order of the partitions matters."""
    is_together: bool = False
    """True if one merge publishes all partitions."""
    recheck: bool = False
    """True if partitions that ended `published` or `skipped` run again, since main may lack them now."""


class BackfillChange(WireMessage):
    """Argument of the update `change`."""

    action: Literal["pause", "resume", "retry", "window"]
    by: str
    reason: str = ""
    window: int | None = Field(default=None, ge=1, le=MAX_WINDOW)


class BackfillStatus(WireMessage):
    """Answer to the query `status`, and result of the workflow."""

    name: str
    starter: str
    pipeline: str
    """Path of the pipeline file."""
    children: dict[str, str] = Field(default_factory=dict)
    """Workflow that started the run, by running partition."""
    progress: BackfillState
    together: JointPublish | None = None
    """State of the merge of all partitions; None if the partitions are published one by one."""
