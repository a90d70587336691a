"""Messages of people to landing zones: pause and resume, and decisions about batches."""

from typing import Literal

from sluice.base_model import WireMessage
from sluice.contracts.arrivals import BatchRef
from sluice.contracts.starting import PipelineText


class BatchRequest(WireMessage):
    """A person's request about a batch."""

    batch: str
    by: str
    over_younger: bool = False  # true if its rows may replace those of younger batches


class BatchCommand(BatchRequest):
    """A person's decision about a batch that was kept out."""

    action: Literal["retry", "set aside"]
    keeps_named: bool = False  # false in commands of an earlier release, which replays repeat as they were


class SplitBatch(BatchRequest):
    """A person's request to replace a batch by two halves, in order to identify its bad file."""


class SplitBatchInput(WireMessage):
    """Input of `split_batch`."""

    name: str
    """Name of the pipeline."""
    ref: BatchRef
    pipeline: PipelineText | None = None  # None in requests of an earlier release


class SplitBatchResult(WireMessage):
    """Result of `split_batch`: the batches with the first and the second half of the files."""

    halves: list[BatchRef]


class PauseZone(WireMessage):
    """Request to pause or resume a landing zone. A paused zone collects files but starts no batch."""

    paused: bool
    note: str = ""
    by: str
