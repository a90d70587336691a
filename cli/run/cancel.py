"""The command `cancel`: cancel a run, after showing it and asking for confirmation."""

from typing import Annotated

import typer
from temporalio.service import RPCError, RPCStatusCode

from cli.confirming import Yes, confirm
from cli.context import CommandContext, current_user, no_preparation, run_command
from cli.layout import print_detail
from cli.options import AsJson
from cli.program import program
from runtime.missing_worker import START_A_WORKER
from runtime.run.find_run import RunLookup, find_run_under_way, query_status
from runtime.stuck_workflow import StuckWorkflow, find_stuck
from sluice.errors import InvalidPipeline
from sluice.presentation.changes import describe_change
from sluice.times import format_time

_LEFT = (
    "Sluice deletes its branch later, or quarantines the rows on it. If the run was merging, main may contain them: "
    "`query` shows main."
)


def cancel(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run as `list` shows it, or a pipeline with one run under way.")
    ],
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Cancel a run: stop its Spark job and delete its branch. Main does not change.

    A run that has merged is published. If the worker cannot continue the run, a second `cancel` ends it at once,
    without its last steps.
    """

    async def command(context: CommandContext, _: None) -> int:
        lookup = await find_run_under_way(context.client, run, "cancel")
        workflow_id = lookup.handle.id
        stuck, has_answered = await _print_run(context, lookup)
        terminates = stuck is not None and stuck.is_cancel_requested
        question = "End it at once, without its last steps?" if terminates else "Cancel it, and delete its branch?"
        confirm(context, question, yes=yes)
        try:
            if terminates:
                await lookup.handle.terminate(reason=f"cancelled by {current_user()}: the worker cannot continue it")
            else:
                await lookup.handle.cancel()
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise
            raise InvalidPipeline(f"{workflow_id} has ended meanwhile: there is nothing to cancel") from error
        fields = {"workflow_id": workflow_id, "cancel_requested": True, "terminated": terminates}
        asked = f"Asked {workflow_id} to stop."
        if stuck:
            asked += f" If no worker continues it, `{program()} cancel {workflow_id}` ends it at once."
        elif not has_answered:
            asked += f" It stops when a worker answers: {START_A_WORKER}."
        context.print_result(fields, f"Ended {workflow_id}. {_LEFT}" if terminates else asked)
        return 0

    run_command(command, as_json, no_preparation)


async def _print_run(context: CommandContext, lookup: RunLookup) -> tuple[StuckWorkflow | None, bool]:
    """Print the run that a cancel ends.

    Returns:
        Why the worker cannot continue it, or None if it can; and True if a worker reported its status.
    """
    stuck = await find_stuck(lookup.handle, lookup.description)
    status = None if stuck else await query_status(lookup.handle)  # a stuck run answers no query
    unknown = "not known: the worker cannot continue it" if stuck else "not known: no worker answers"
    details = {"run": f"{lookup.handle.id} ({lookup.handle.run_id})"}
    details["started"] = format_time(lookup.description.start_time)
    details["stage"] = status.stage if status else unknown
    if stuck:
        details["why"] = stuck.why
    if status and status.result.branch:
        details["branch"] = status.result.branch
    for name, change in status.result.tables.items() if status else ():
        details[name] = describe_change(change)
    for name, value in details.items():
        print_detail(context.console, name, value)
    return stuck, status is not None
