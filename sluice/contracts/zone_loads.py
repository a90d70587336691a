"""Messages for the load of files of a landing zone that a person names."""

from typing import Literal

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.contracts.arrivals import BatchRef, BatchState
from sluice.contracts.lake_query import LakeQueryMessage
from sluice.contracts.starting import PipelineText

MOST_NAMED = 500
"""Maximum number of files that one request names."""


class PlanLoadInput(LakeQueryMessage):
    """Input of `plan_load`: plan the load of named files of a landing zone."""

    kind: Literal["plan_load"] = "plan_load"
    pipeline: PipelineText
    held: list[BatchRef] = Field(default_factory=list)
    """Batches of the zone. Their files go into no other batch."""
    states: dict[str, BatchState] = Field(default_factory=dict)
    """State of each batch that is kept out or set aside, by its id."""
    paths: list[str] = Field(min_length=1, max_length=MOST_NAMED)


class PlannedFile(WireMessage):
    """One file that a person named."""

    path: str
    size: int = 0
    is_loadable: bool
    reason: str
    """Reason why it was not loaded so far, or why it cannot be loaded now."""
    was_rolled_back: bool = False
    """True if its run was rolled back. Later files may have been loaded since."""
    may_be_older: bool = False
    """True if main got its content from another path, and other content since."""


class LoadPlan(WireMessage):
    """Result of `plan_load`."""

    files: list[PlannedFile]
    batch: BatchRef | None = None
    """Batch of the files that can be loaded. It records their content at the time when they were shown."""


class LoadBatch(WireMessage):
    """A person's request to a landing zone to load a batch of named files."""

    ref: BatchRef
    by: str
    over_younger: bool = False
    """True if its rows may replace younger ones."""
