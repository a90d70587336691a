"""The command that lists runs."""

import asyncio
import json
from collections import Counter
from typing import Annotated, Any

import typer
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus

from cli.context import CommandContext, run_command
from cli.layout import print_entries
from cli.list_backfills import print_backfills
from cli.list_schedules import print_schedules
from runtime.find_run import find_handle, list_runs, query_status
from sluice.errors import BadEnvironment, InvalidPipeline
from sluice.presentation.decisions import describe_state
from sluice.times import format_time
from workflows.search_attributes import SUMMARY_MEMO

_ANSWER_WITHIN = 2.0
"""Seconds in which a worker has to tell the stage of a run; else the list says `running`."""
_ENCRYPTED = (BadEnvironment, ValueError)
"""What the codec raises where there is no key, or another one: a list is shown without what that hides."""
_AT_ONCE = 8
"""How many runs are asked for their stage at the same time."""

app = typer.Typer(add_completion=False)


@app.command("list")
def list_command(
    limit: Annotated[int, typer.Option(help="How many, the newest first.", min=1, max=1000)] = 20,
    schedules: Annotated[
        bool, typer.Option("--schedules", help="List the schedules of pipelines: last, next and missed starts.")
    ] = False,
    backfills: Annotated[
        bool, typer.Option("--backfills", help="List the latest backfill of each pipeline: partitions by state.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List runs: the state of each, what it loads, and when it was started; or schedules, or backfills."""

    def check_options() -> None:
        if schedules and backfills:
            raise InvalidPipeline("--schedules and --backfills are two lists: give one of them")

    async def command(context: CommandContext, _: None) -> int:
        if backfills:
            return await print_backfills(context, limit)
        if schedules:
            return await print_schedules(context)
        runs = await list_runs(context.client, limit)
        room = asyncio.Semaphore(_AT_ONCE)
        fields = await asyncio.gather(*(_run_fields(context.client, run, room) for run in runs))
        if as_json:
            print(json.dumps({"runs": fields}))
        elif fields:
            _print(context, fields)
        else:
            context.console.print("There are no runs yet.")
        return 0

    run_command(command, as_json, check_options)


def _print(context: CommandContext, runs: list[dict[str, Any]]) -> None:
    same_input = Counter(run["workflow_id"] for run in runs)
    listed: set[str] = set()
    rows = []
    for run in runs:
        # `RUN` means the latest run of a workflow id; an earlier one is known by its run id alone.
        earlier = same_input[run["workflow_id"]] > 1 and run["workflow_id"] in listed
        listed.add(run["workflow_id"])
        name = run["run_id"] if earlier else run["workflow_id"]
        state = run["outcome"] or run["stage"] or run["state"]
        what = run["summary"] or ", ".join(run["tables"])
        rows.append((name, state, format_time(run["started"]), what))
    print_entries(context.console, ("run", "state", "started", "what"), rows, beside=3)


async def _run_fields(client: Client, execution: WorkflowExecution, room: asyncio.Semaphore) -> dict[str, Any]:
    attributes = execution.search_attributes
    first = {name: values[0] for name, values in attributes.items() if name.startswith("Sluice") and values}
    return {
        "workflow_id": execution.id,
        "run_id": execution.run_id,
        "pipeline": first.get("SluicePipeline", execution.id.rsplit("-", 1)[0]),
        "state": execution.status.name.lower() if execution.status else "",
        "outcome": first.get("SluiceOutcome"),
        "started": execution.start_time.isoformat(timespec="seconds"),
        "tables": list(attributes.get("SluiceTable", [])),
        "stage": await _stage(client, execution, room),
        "summary": await _summary(execution),
    }


async def _summary(execution: WorkflowExecution) -> str:
    """Return what a run does, in one line; empty where it is encrypted by a key that is not here."""
    try:
        return str((await execution.memo()).get(SUMMARY_MEMO, ""))
    except Exception:  # each codec has errors of its own, and a list is shown without what it hides
        return ""


async def _stage(client: Client, execution: WorkflowExecution, room: asyncio.Semaphore) -> str:
    """Return the stage of a run that has not ended; empty where no worker tells it in time."""
    if execution.status != WorkflowExecutionStatus.RUNNING:
        return ""
    async with room:
        try:
            status = await asyncio.wait_for(query_status(find_handle(client, execution)), _ANSWER_WITHIN)
        except (asyncio.TimeoutError, *_ENCRYPTED):
            return ""
    return describe_state(status) if status else ""
