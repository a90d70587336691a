"""Decide whether a file in a landing zone is loaded, from its state on main and in batches."""

from dataclasses import dataclass

from sluice.command_line import OVER_YOUNGER
from sluice.contracts.arrivals import ROLLED_BACK, FileStatus, other_content_in
from sluice.input.held_files import HeldFile
from sluice.input.selection import describe_overtaken, describe_partly
from sluice.pipeline.arrival import Overwritten

LOADED_BEFORE = "loaded before: "
"""Prefix of the reason for a file with older content under a new name, which a person may load."""


@dataclass(frozen=True)
class KnownFile:
    """State of a file that arrived, on main and in batches."""

    held: HeldFile | None = None
    """Load of the file, or of a part of it, that is on main; None if there is none."""
    batch: str = ""
    """Batch that has its content."""
    path_batch: str = ""
    """Batch that has its path with other content."""
    order_matters: bool = False
    """True if the rows of that other content will replace its rows."""
    rolled_back: str = ""
    """Run that loaded this content from this path and was rolled back. Nothing was loaded from the path since."""
    replaced: str = ""
    """Run in effect that loaded other content from this path."""
    replaced_copy: str = ""
    """Path from which that run loaded the content, if this path had a copy of it."""


@dataclass(frozen=True)
class Judgement:
    """Decision about a file."""

    status: FileStatus | None
    """New status of the file; None if it is loaded now."""
    detail: str = ""
    is_reported: bool = False
    """True if the decision is reported to people."""


def judge(file: KnownFile, overwritten: Overwritten) -> Judgement:
    """Decide whether a file is loaded, or state the reason why it is not.

    A file waits while a batch has its path with other content. If the run that loaded this content from this path was
    rolled back, the file is not loaded again automatically.
    """
    if known := _judge_what_is_known(file):
        return known
    if file.rolled_back:
        return Judgement("loaded", file.rolled_back + ROLLED_BACK)
    if file.replaced and overwritten != "load":
        reason = describe_overwritten(file.replaced, file.replaced_copy)
        return Judgement("ignored", reason, is_reported=overwritten == "alert")
    return Judgement(None)


def describe_overwritten(run: str, copied_from: str) -> str:
    """Describe the load of a path's earlier content.

    Args:
        run: the run that loaded it.
        copied_from: the path from which the run loaded it, if it was a copy; else empty.
    """
    if copied_from:
        return f"overwritten: run {run} loaded the earlier content of this path from {copied_from}"
    return f"overwritten: run {run} loaded this path with other content"


def _judge_what_is_known(file: KnownFile) -> Judgement | None:
    """Return the decision about a file that main or a batch has; None if neither has it."""
    held, is_overtaken = file.held, bool(file.path_batch) and file.order_matters
    if held and not held.is_partly and not held.overtaken_by and not is_overtaken:
        return Judgement("loaded", held.load.workflow_id)
    if file.batch:
        return Judgement("in a batch", file.batch)
    if file.path_batch:
        return Judgement("in a batch", other_content_in(file.path_batch))
    if held is None:
        return None
    if held.is_partly:
        return Judgement("refused", describe_partly(held), is_reported=True)
    command = f"if it is the newest file, `arrivals PIPELINE --load FILE {OVER_YOUNGER}` loads it"
    return Judgement("refused", f"{LOADED_BEFORE}{command}. {describe_overtaken(held)}", is_reported=True)
