"""Refuse requests that do not fit a backfill under way."""

from sluice.backfills.progress import BackfillProgress
from sluice.command_line import OVER_YOUNGER
from sluice.contracts.backfill import AddPartitions, BackfillChange, BackfillInput
from sluice.sizes import format_count


def problem_of_addition(input: BackfillInput, progress: BackfillProgress, added: AddPartitions) -> str:
    """Return the reason why partitions cannot be added to a backfill, or an empty string."""
    is_together = input.together is not None
    options = {
        "--publish": added.is_together != is_together,
        "--again": added.again != input.again,
        OVER_YOUNGER: added.over_younger != input.over_younger,
    }
    ending = _how_to_end(input.name, progress)
    if other := [option for option, differs in options.items() if differs]:
        return f"the backfill under way was started with another {other[0]}. {ending}"
    if added.in_order and not progress.state.in_order:
        return (
            "the order of these partitions matters, and the backfill under way runs its partitions in any order. "
            f"{ending}"
        )
    if is_together and set(added.partitions) - set(progress.state.partitions):
        return f"a backfill that publishes partitions together cannot take more partitions. {ending}"
    if added.pipeline != input.pipeline and progress.running:
        return (
            f"a backfill of another version of the pipeline is under way. Pause it by `backfill pause {input.name}`, "
            f"and start again when none of its partitions runs; or cancel it by `backfill cancel {input.name}`"
        )
    return ""


def problem_of_edit(input: BackfillInput, progress: BackfillProgress, added: AddPartitions) -> str:
    """Return the reason why the waiting partitions cannot run with an edited pipeline, or an empty string."""
    if added.pipeline.folder != input.pipeline.folder:
        return (
            f"the backfill under way was started in {input.pipeline.folder}, from {input.pipeline.name}. "
            f"{_how_to_end(input.name, progress)}"
        )
    is_edited = added.pipeline.text != input.pipeline.text and not progress.running
    if is_edited and (left := sorted(set(progress.waiting) - set(added.partitions))):
        return (
            f"the pipeline file was changed, and the backfill under way has {format_count(len(left), 'more partition')}"
            f" that would run with it, {left[0]} for example. Name them too, or cancel the backfill by "
            f"`backfill cancel {input.name}`"
        )
    return ""


def _how_to_end(name: str, progress: BackfillProgress) -> str:
    cancel = f"cancel it by `backfill cancel {name}`"
    if progress.paused:
        go_on = "retry" if progress.resume_problem else "resume"
        return f"It is paused: let it go on by `backfill {go_on} {name}`, or {cancel}"
    return f"Wait for its end, or {cancel}"


def problem_of_change(progress: BackfillProgress, change: BackfillChange) -> str:
    """Return the reason why a change would let a partition overtake an earlier one, or an empty string."""
    if change.action == "resume":
        return progress.resume_problem
    return progress.window_problem(change.window or 1) if change.action == "window" else ""
