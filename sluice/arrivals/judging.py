"""Decide what becomes of a file in a landing zone, by what main and the batches have of it."""

from dataclasses import dataclass

from sluice.contracts.arrivals import ROLLED_BACK, FileStatus, other_content_in
from sluice.input.held_files import HeldFile
from sluice.input.selection import describe_partly
from sluice.pipeline.arrival import Overwritten


@dataclass(frozen=True)
class KnownFile:
    """What is known of a file that arrived."""

    held: HeldFile | None = None
    """What main holds of it."""
    batch: str = ""
    """The batch that has its content."""
    path_batch: str = ""
    """The batch that has its path with other content."""
    order_matters: bool = False
    """Whether the rows of that content will take the place of its rows."""
    rolled_back: str = ""
    """The run that loaded this content from this path, and was rolled back; nothing was loaded from there since."""
    replaced: str = ""
    """The run in effect that loaded other content from this path."""


@dataclass(frozen=True)
class Judgement:
    """What becomes of a file."""

    status: FileStatus | None
    """Its status from now on; None for one that is loaded now."""
    detail: str = ""
    is_reported: bool = False
    """Whether people are told."""


def judge(file: KnownFile, overwritten: Overwritten) -> Judgement:
    """Decide whether a file is loaded, or why it is not.

    Other content of a path that a batch has waits until the batch is gone. A file is not loaded again by itself if the
    run was rolled back that loaded this content from this path.
    """
    if known := _judge_what_is_known(file):
        return known
    if file.rolled_back:
        return Judgement("loaded", file.rolled_back + ROLLED_BACK)
    if file.replaced and overwritten != "load":
        reason = f"overwritten: run {file.replaced} loaded this path with other content"
        return Judgement("ignored", reason, is_reported=overwritten == "alert")
    return Judgement(None)


def _judge_what_is_known(file: KnownFile) -> Judgement | None:
    """Return what becomes of a file that main or a batch has; None if neither has it."""
    held, is_overtaken = file.held, bool(file.path_batch) and file.order_matters
    if held and not held.is_partly and not is_overtaken:
        return Judgement("loaded", held.load.workflow_id)
    if file.batch:
        return Judgement("in a batch", file.batch)
    if file.path_batch:
        return Judgement("in a batch", other_content_in(file.path_batch))
    return Judgement("refused", describe_partly(held), is_reported=True) if held else None
