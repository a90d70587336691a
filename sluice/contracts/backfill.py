"""The messages of `Backfill`: the runs of one pipeline over many partitions, a few at a time."""

from typing import Literal

from pydantic import Field

from sluice.base_model import Model
from sluice.contracts.run import Cause, Outcome
from sluice.contracts.starting import EndedRun, PipelineText

PartitionState = Literal["waiting", "running", "published", "kept out", "failed", "cancelled", "skipped"]
MAX_WINDOW = 100


class PartitionNote(Model):
    """What is kept of a partition whose data is not on main."""

    outcome: Outcome | Literal["refused"]
    cause: Cause | None = None
    reason: str = ""
    workflow_id: str = ""
    run_id: str = ""


class CampaignState(Model):
    """A campaign as it stands: it goes along when the workflow continues as new, and answers queries."""

    partitions: list[str]
    letters: str = ""
    """The state of each partition, a letter each, as `sluice/backfills/campaign.py` has them; empty: all wait."""
    askers: dict[str, str] = Field(default_factory=dict)
    """By partition, who asked for it, where that is not the starter of the campaign."""
    asked_at: dict[str, str] = Field(default_factory=dict)
    """By partition that runs, when its run was asked for, in ISO 8601."""
    notes: dict[str, PartitionNote] = Field(default_factory=dict)
    """By partition, why it is not on main; the latest ones alone."""
    window: int = Field(default=4, ge=1, le=MAX_WINDOW)
    """How many partitions run at a time."""
    in_order: bool = False
    """Whether a partition runs only once each one before it is done."""
    stop_after: int = Field(default=3, ge=0)
    """After how many failures the campaign pauses; 0 for never."""
    failures: int = 0
    """How many there were since it was started or resumed."""
    paused: str = ""
    """Why it is paused; empty where it is not."""
    rows_added: int = 0


class JointPublish(Model):
    """How a backfill stands that publishes all partitions by one merge."""

    branch: str = ""
    """The branch that its partitions are published to; empty before it is created."""
    catalog_id: str = ""
    """The identity of the catalog that it was created in."""
    quarantine: str = ""
    """The name under which all of them were put together, once each is on the branch."""
    is_under_way: bool = False
    """Whether the run that publishes them was started."""
    ended: EndedRun | None = None
    """How it ended, or why it was not started."""


class OpenBackfillInput(Model):
    """Input of `open_backfill`."""

    pipeline: str
    """Its name."""
    request: str
    """The digest of the pipeline's text and the partitions: the same request continues on a branch that was left."""


class DiscardBackfillInput(Model):
    """Input of `discard_backfill`: delete what backfills of a pipeline left, of which none runs."""

    pipeline: str


class CollectBackfillInput(Model):
    """Input of `collect_backfill`."""

    branch: str
    catalog_id: str
    pipeline: PipelineText
    values: dict[str, str]
    """The values of the placeholders in the file, for all partitions together."""
    workflow_id: str
    run_id: str
    """The backfill's own ids: the quarantine names them as its run."""
    day: str
    """The day that is part of the quarantine's name, as `2026-01-31`."""
    expires: str
    """Until when it is kept, in ISO 8601."""


class BackfillBranch(Model):
    """Result of `open_backfill` and `collect_backfill`: a branch."""

    name: str
    catalog_id: str
    """The identity of the catalog that it is in."""


class BackfillInput(Model):
    """Input of the workflow `Backfill`."""

    pipeline: PipelineText
    name: str
    """The name of the pipeline."""
    starter: str
    """Who started it."""
    again: bool = False
    """Whether files that were published before may be published again."""
    over_younger: bool = False
    """Whether partitions may be loaded that are older than what main holds."""
    campaign: CampaignState
    together: JointPublish | None = None
    """For `--publish together`; None where each partition is published by itself."""
    keep: float = 0.0
    """How many seconds the partitions are kept that were put together and not published."""
    starts_per_run: int = Field(default=200, ge=1)
    """After so many starts of runs the workflow continues as new, so that its history stays short."""
    ask_again: float = Field(default=600, gt=0)
    """After so many seconds a child that an earlier run of the workflow started is asked for once more."""


class AddPartitions(Model):
    """Argument of the update `add`: a start of a backfill whose pipeline has one already."""

    pipeline: PipelineText
    partitions: list[str]
    starter: str = ""
    """Who adds them."""
    again: bool = False
    over_younger: bool = False
    in_order: bool = False
    """Whether the order of its partitions matters."""
    is_together: bool = False
    """Whether it publishes all partitions by one merge."""


class CampaignChange(Model):
    """Argument of the update `change`."""

    action: Literal["pause", "resume", "retry", "window"]
    by: str
    reason: str = ""
    window: int | None = Field(default=None, ge=1, le=MAX_WINDOW)


class CampaignStatus(Model):
    """The answer to the query `status`, and the result of the workflow."""

    name: str
    starter: str
    pipeline: str
    """The path of the pipeline file."""
    children: dict[str, str] = Field(default_factory=dict)
    """By partition that runs, the workflow that has started its run."""
    campaign: CampaignState
    together: JointPublish | None = None
    """How the merge of all partitions stands; None where each is published by itself."""
