"""The command `list`: list runs, schedules or backfills."""

import json
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import Annotated, Any

import typer
from temporalio.client import WorkflowExecution, WorkflowExecutionStatus

from cli.context import CommandContext, run_command
from cli.layout import print_entries
from cli.options import AsJson
from runtime.installation.identity import with_known_installation
from runtime.run.find_run import ALL_RUNS, OUTCOMES, RUNNING, RunFilter
from runtime.run.listed_run import listed_run, query_statuses
from runtime.run.listed_runs import ListedRuns, find_earlier, find_quarantines, find_rollbacks, list_lines
from sluice.contracts.run import RunStatus
from sluice.durations import seconds
from sluice.errors import InvalidPipeline
from sluice.presentation.decisions import describe_state
from sluice.presentation.next_steps import is_caught_rehearsal
from sluice.sizes import format_count
from sluice.times import format_time, parse_time

_MINUTE, _HOUR = 60, 3600
_UNPUBLISHED = ("failed", "kept out", "quarantined", "discarded", "cancelled", "collected")
"""States of partitions and of runs whose data is not on main."""
_STATES = (RUNNING, *OUTCOMES)


def list_command(
    limit: Annotated[int, typer.Option(help="Maximum number of lines, newest first.", min=1, max=1000)] = 20,
    pipeline: Annotated[str, typer.Option("--pipeline", help="Only runs of this pipeline.")] = "",
    table: Annotated[str, typer.Option("--table", help="Only runs that write this table.")] = "",
    state: Annotated[str, typer.Option("--state", help=f"Only runs in this state: {', '.join(_STATES)}.")] = "",
    since: Annotated[
        str, typer.Option("--since", help="Only runs that started then or later: 2h, 7d, 2026-11-22, 2026-11-22T07:45.")
    ] = "",
    schedules: Annotated[
        bool, typer.Option("--schedules", help="List the schedules of pipelines: last, next and missed starts.")
    ] = False,
    backfills: Annotated[
        bool, typer.Option("--backfills", help="List the latest backfill of each pipeline: partitions by state.")
    ] = False,
    each_partition: Annotated[
        bool,
        typer.Option("--each-partition", help="List each run of a backfill instead of one line, as --json does."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List runs with their state, work and start; or schedules, or backfills."""

    def check_options() -> RunFilter:
        if schedules and backfills:
            raise InvalidPipeline("--schedules and --backfills are two lists: give one of them")
        wanted = RunFilter(pipeline, table, state, _parse_since(since) if since else None)
        if (schedules or backfills) and wanted != ALL_RUNS:
            raise InvalidPipeline("--pipeline, --table, --state and --since select runs, not schedules or backfills")
        return wanted

    async def command(context: CommandContext, wanted: RunFilter) -> int:
        if backfills:
            from cli.backfills.list_backfills import print_backfills  # noqa: PLC0415  # a list of runs does not need it

            return await print_backfills(context, limit)
        if schedules:
            from cli.schedules.list_schedules import print_schedules  # noqa: PLC0415  # a list of runs does not need it

            return await print_schedules(context)
        settings = with_known_installation(context.settings)
        each_run = each_partition or as_json
        lines = await list_lines(context.client, settings.installation, limit, wanted, each_run=each_run)
        alone = [line.runs[0] for line in lines if not line.backfill]
        statuses = await query_statuses(context.client, alone)
        fields = [await _run_fields(*each) for each in zip(alone, statuses, strict=True)]
        await _add_quarantines(context, alone, fields)
        await _add_rollbacks(context, alone, fields)
        if as_json:
            print(json.dumps({"runs": fields}))
        elif lines:
            named = {each["run_id"]: each for each in fields}
            shown = [_backfill_fields(line) if line.backfill else named[line.runs[0].run_id] for line in lines]
            _print(context, shown, await find_earlier(context.client, alone))
        else:
            context.console.print("There are no runs yet." if wanted == ALL_RUNS else "There is no such run.")
        await _hint_at_silence(context, alone, statuses)
        return 0

    run_command(command, as_json, check_options, read_only=True)


async def _hint_at_silence(
    context: CommandContext, runs: Sequence[WorkflowExecution], statuses: Sequence[RunStatus | None]
) -> None:
    """Print a hint if no worker is there to answer for a run that is under way."""
    for run, status in zip(runs, statuses, strict=True):
        if run.status == WorkflowExecutionStatus.RUNNING and status is None:
            await context.hint_at_missing_worker(run.id)
            return


async def _add_quarantines(
    context: CommandContext, runs: Sequence[WorkflowExecution], fields: Sequence[dict[str, Any]]
) -> None:
    """Add to each quarantined run whether its quarantine is kept, and the run that published it."""
    quarantined = [each for each in fields if each["outcome"] == "quarantined"]
    ids = {each["run_id"] for each in quarantined}
    known = await find_quarantines(
        context.client, context.settings.installation, [run for run in runs if run.run_id in ids]
    )
    for each in quarantined:
        each["kept"] = None if known.kept is None else each["run_id"] in known.kept
        each["released_by"] = known.released_by.get(each["run_id"], "")


async def _add_rollbacks(
    context: CommandContext, runs: Sequence[WorkflowExecution], fields: Sequence[dict[str, Any]]
) -> None:
    """Add to each published run the run that rolled it back, if any."""
    published = {each["run_id"] for each in fields if each["outcome"] == "published"}
    by = await find_rollbacks(context.client, [run for run in runs if run.run_id in published])
    for each in fields:
        if each["run_id"] in published:
            each["rolled_back_by"] = by.get(each["run_id"], "")


def _state(run: dict[str, Any]) -> str:
    state = str(run["outcome"] or run["stage"] or run["state"])
    if run.get("rolled_back_by"):
        return f"{state}, then rolled back by {run['rolled_back_by']}"
    if run.get("released_by"):
        return f"{state}, then published by {run['released_by']}"
    if is_caught_rehearsal(str(run.get("pipeline")), run["outcome"]):
        return f"{state}, as rehearsed"
    return f"{state}, no longer kept" if run.get("kept") is False else state


def _backfill_fields(line: ListedRuns) -> dict[str, Any]:
    """Return the fields of the line that sums up the runs of one backfill."""
    oldest = line.runs[-1]
    is_running = line.is_running or any(run.close_time is None for run in line.runs)
    ended = datetime.now(timezone.utc) if is_running else max(run.close_time for run in line.runs if run.close_time)
    state = "running" if is_running else "ended"
    state = "paused" if is_running and line.is_paused else state
    states = line.partitions or Counter(_outcome(run) for run in line.runs)
    unpublished = ", ".join(f"{states[each]:,} {each}" for each in _UNPUBLISHED if states[each])
    name = f"backfill {line.backfill}"  # earlier ones have the same name: `backfill status` shows the latest
    return {
        "workflow_id": name,
        "run_id": name,
        "outcome": f"{state}, {unpublished}" if unpublished else state,
        "started": oldest.start_time.isoformat(timespec="seconds"),
        "duration": _format_elapsed(ended - oldest.start_time),
        "summary": f"{format_count(states.total(), 'partition' if line.partitions else 'run')}: "
        + ", ".join(f"{count:,} {state}" for state, count in states.most_common()),
        "tables": [],
    }


def _outcome(execution: WorkflowExecution) -> str:
    named = execution.search_attributes.get("SluiceOutcome")
    return str(named[0]) if named else execution.status.name.lower() if execution.status else ""


def _print(context: CommandContext, runs: list[dict[str, Any]], earlier: Collection[str]) -> None:
    """Print the list.

    Args:
        earlier: run ids of the runs whose workflow id names a later run.
    """
    rows = []
    for run in runs:
        name = run["run_id"] if run["run_id"] in earlier else run["workflow_id"]
        what = run["summary"] or ", ".join(run["tables"])
        rows.append((name, _state(run), format_time(run["started"]), run["duration"], what))
    print_entries(context.console, ("run", "state", "started", "duration", "what"), rows, in_first_line=4)


async def _run_fields(run: WorkflowExecution, status: RunStatus | None) -> dict[str, Any]:
    listed = await listed_run(run)
    return {
        "workflow_id": listed.workflow_id,
        "run_id": listed.run_id,
        "pipeline": listed.pipeline,
        "state": listed.state,
        "outcome": listed.outcome,
        "started": listed.started.isoformat(timespec="seconds"),
        "duration": _format_elapsed(listed.elapsed),
        "tables": listed.tables,
        "stage": describe_state(status) if status else "",
        "summary": listed.summary,
    }


def _parse_since(text: str) -> datetime:
    """Parse a start time: a duration before now, or a time, which is in UTC unless it states an offset.

    Raises:
        InvalidPipeline: the text is neither.
    """
    with suppress(ValueError):
        return datetime.now(timezone.utc) - timedelta(seconds=seconds(text))
    try:
        time = parse_time(text)
    except ValueError as error:
        raise InvalidPipeline(
            f"--since: {text[:100]!r} is not a time: write 2h, 7d, 2026-11-22 or 2026-11-22T07:45"
        ) from error
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def _format_elapsed(elapsed: timedelta) -> str:
    """Format the duration of a run: `12 s`, `3 min`, `2.5 h`."""
    total = elapsed.total_seconds()
    if total < _MINUTE:
        return f"{max(total, 0):.0f} s"
    return f"{total / _MINUTE:.0f} min" if total < _HOUR else f"{total / _HOUR:.1f} h"
