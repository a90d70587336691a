"""The messages of files of a landing zone that a person has loaded by name."""

from typing import Literal

from pydantic import Field

from sluice.base_model import Model
from sluice.contracts.arrivals import BatchRef, BatchState
from sluice.contracts.starting import PipelineText

MOST_NAMED = 500
"""Maximum number of files that one request names."""


class PlanLoadInput(Model):
    """What `plan_load` plans: the load of named files of a landing zone."""

    kind: Literal["plan_load"] = "plan_load"
    pipeline: PipelineText
    held: list[BatchRef] = Field(default_factory=list)
    """The batches that the zone holds: their files are in no other one."""
    states: dict[str, BatchState] = Field(default_factory=dict)
    """The state of each batch that is kept out or set aside, by its id."""
    paths: list[str] = Field(min_length=1, max_length=MOST_NAMED)


class PlannedFile(Model):
    """One file that a person named."""

    path: str
    size: int = 0
    is_loadable: bool
    reason: str
    """Why it was not loaded so far, or why it cannot be loaded now."""
    was_rolled_back: bool = False
    """Whether its run was rolled back: later files may have been loaded since."""


class LoadPlan(Model):
    """Result of `plan_load`."""

    files: list[PlannedFile]
    batch: BatchRef | None = None
    """The batch of the files that can be loaded: it holds what they contained when they were shown."""


class LoadBatch(Model):
    """What a person asks of a landing zone: to load a batch of named files."""

    ref: BatchRef
    by: str
