"""Cancel a backfill, after showing it and asking for confirmation."""

from rich.text import Text

from cli.backfills.grid import describe_joint_publish, totals
from cli.confirming import confirm
from cli.context import CommandContext, current_user
from cli.layout import print_line
from cli.program import program
from runtime.backfills.backfills import (
    cancel_backfill,
    discard_backfill,
    end_stuck_backfill,
    find_running_backfill,
    read_backfill,
)
from runtime.stuck_workflow import find_stuck
from sluice.errors import SluiceError
from sluice.identifiers import backfill_id


async def cancel_backfill_of(context: CommandContext, pipeline: str, *, yes: bool) -> int:
    """Cancel the backfill of a pipeline, or discard the remains of an ended one. Show it and ask first.

    A second cancel ends a backfill that the worker cannot continue, together with its runs.

    Returns:
        The exit code.
    """
    workflow_id = backfill_id(context.installation_with_id.sluice_installation, pipeline)
    fields = {"workflow_id": workflow_id, "cancel_requested": True}
    running = await find_running_backfill(context.client, context.installation_with_id, pipeline)
    await _print_taken(context, pipeline)
    ends = "Cancel its runs? Partitions that it published stay on main; those that it collected are deleted."
    confirm(context, ends if running else "It has ended. Cancel and delete what it left, if anything?", yes=yes)
    # A worker may have continued it while the person read.
    stuck = await find_stuck(running, await running.describe()) if running else None
    if running and stuck and stuck.is_cancel_requested:
        reason = f"cancelled by {current_user()}: the worker cannot continue it"
        left = await end_stuck_backfill(context.client, context.installation_with_id, running, pipeline, reason)
        text = f"Ended the backfill of {pipeline}. Cancelled or deleted what it left: {', '.join(left) or 'nothing'}"
        context.print_result({**fields, "terminated": True, "left": left}, text)
        return 0
    if running:
        await cancel_backfill(running)
        text = f"Asked the backfill of {pipeline} and its runs to stop."
        if stuck:
            again = f"`{program()} backfill cancel {pipeline}`"
            text = f"Asked the backfill of {pipeline} to stop. If no worker continues it, {again} ends it and its runs."
        context.print_result({**fields, "terminated": False}, text)
        return 0
    left = await discard_backfill(context.client, context.installation_with_id, pipeline)
    text = f"The backfill of {pipeline} had ended. Cancelled or deleted what it left: {', '.join(left)}"
    context.print_result({**fields, "left": left}, text)
    return 0


async def _print_taken(context: CommandContext, pipeline: str) -> None:
    """Print what a cancel ends. An unknown state does not prevent the cancel."""
    try:
        now = await read_backfill(context.client, context.installation_with_id, pipeline)
    except SluiceError as error:
        print_line(context.console, Text("backfill "), f"{pipeline}: its state is not known ({error})")
        return
    print_line(context.console, Text("backfill "), f"{now.name} of {now.pipeline}, started by {now.starter}")
    print_line(context.console, Text("partitions "), totals(now))
    if now.together:
        print_line(context.console, Text("merge "), describe_joint_publish(now.together))
    for partition, child in now.children.items():
        print_line(context.console, Text("runs "), f"{partition}: {child}")
