"""Cancel a backfill, after showing it and asking for confirmation."""

from rich.text import Text

from cli.backfills.grid import describe_joint_publish, totals
from cli.confirming import confirm
from cli.context import CommandContext
from cli.layout import print_line
from runtime.backfills.backfills import (
    cancel_backfill,
    discard_backfill,
    find_running_backfill,
    read_backfill,
)
from sluice.errors import SluiceError
from sluice.identifiers import backfill_id


async def cancel_backfill_of(context: CommandContext, pipeline: str, *, yes: bool) -> int:
    """Cancel the backfill of a pipeline, or discard the remains of an ended one. Show it and ask first.

    Returns:
        The exit code.
    """
    workflow_id = backfill_id(context.installation_with_id.sluice_installation, pipeline)
    fields = {"workflow_id": workflow_id, "cancel_requested": True}
    running = await find_running_backfill(context.client, context.installation_with_id, pipeline)
    await _print_taken(context, pipeline)
    confirm(context, "Cancel its runs, and delete what it collected?", yes=yes)
    if running:
        await cancel_backfill(running)
        context.print_result(fields, f"Asked the backfill of {pipeline} and its runs to stop.")
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
