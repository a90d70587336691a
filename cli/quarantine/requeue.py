"""The command `requeue`: run quarantined rows through their pipeline again, repaired."""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from cli.confirming import Yes, confirm
from cli.context import CommandContext, run_command
from cli.layout import print_detail, print_rows
from cli.options import AsJson
from cli.pipeline.values import OverYounger, Partition, ScheduledFor
from cli.run.follow import start_and_follow
from runtime.pipeline.pipeline_input import load_pipeline
from runtime.pipeline.placeholder_values import placeholder_values
from runtime.quarantine.quarantined_rows import duckdb_table, duckdb_text, preview_requeue, with_new_values
from runtime.run.start_run import StartOptions
from runtime.short_workflow import query_lake
from sluice.contracts.lake_queries import (
    PlanRequeueInput,
    QueryRows,
    QueryTablesInput,
    RequeuePlan,
    RequeueSelection,
)
from sluice.contracts.load_order import LoadOrder
from sluice.environment_files import read_environment
from sluice.errors import InvalidPipeline, SluiceError
from sluice.pipeline.model import Pipeline
from sluice.presentation.cells import shown_value
from sluice.publishing.quarantine_tables import AT, RUN, quarantine_table
from sluice.publishing.requeue import check_number_of_runs, requeued_table
from sluice.sizes import format_count

_SHOWN = 10
"""Maximum number of runs shown one by one, newest first."""


def requeue(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file whose run quarantined the rows.")],
    table: Annotated[str | None, typer.Option(help="The table, where the pipeline has several.")] = None,
    run: Annotated[str | None, typer.Option(help="Only rows that this run (its id) quarantined.")] = None,
    where: Annotated[str | None, typer.Option(help="Only rows for which this condition is true.")] = None,
    repairs: Annotated[
        list[str] | None, typer.Option("--set", metavar="COLUMN=SQL", help="A repair: the new value of a column.")
    ] = None,
    over_younger: OverYounger = False,
    partition: Partition = "",
    scheduled_for: ScheduledFor = "",
    detach: Annotated[bool, typer.Option("--detach", help="Start the run, and do not follow it.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Move rows of a quarantine table back into their table, repaired and audited again. This starts a new run."""
    selection = RequeueSelection(table=table, run=run, where=where, values=repairs or [])

    def prepare() -> Pipeline:
        values = placeholder_values(pipeline, scheduled_for, partition)
        return load_pipeline(pipeline, read_environment(), Path.cwd(), values)

    async def command(context: CommandContext, loaded: Pipeline) -> int:
        # Refuse a wrong selection early, before rows are counted.
        await query_lake(context.client, context.settings.installation, _query(loaded, selection), RequeuePlan)
        counts = await _count_rows(context, requeued_table(loaded, table), run)
        _print_taken(context, requeued_table(loaded, table), counts, selection)
        await _print_preview(context, requeued_table(loaded, table), selection)
        confirm(context, "Move them back, audit them again, and publish them if they pass?", yes=yes)
        shown = selection.model_copy(update={"runs": sorted(counts)})
        plan = await query_lake(context.client, context.settings.installation, _query(loaded, shown), RequeuePlan)
        order = LoadOrder(runs=plan.runs, files_of_runs=plan.files_of_runs, over_younger=over_younger)
        options = StartOptions(order=order)
        return await start_and_follow(context, plan.pipeline, plan.input, options, detach=detach)

    run_command(command, as_json, prepare)


def _query(pipeline: Pipeline, selection: RequeueSelection) -> PlanRequeueInput:
    return PlanRequeueInput(pipeline=pipeline, selection=selection)


async def _count_rows(context: CommandContext, table: str, run: str | None) -> dict[str, int]:
    """Return the number of quarantined rows of a table on main, by the run that quarantined them, newest first.

    Raises:
        InvalidPipeline: there are no rows, or they are of too many runs.
    """
    where = f" WHERE {RUN} = {duckdb_text(run)}" if run else ""
    source = duckdb_table(quarantine_table(table))
    sql = f"SELECT {RUN}, count(*) FROM {source}{where} GROUP BY {RUN} ORDER BY max({AT}) DESC"
    rows = (await query_lake(context.client, context.settings.installation, QueryTablesInput(sql=sql), QueryRows)).rows
    if not rows:
        raise InvalidPipeline(f"{quarantine_table(table)} contains no rows{f' of run {run}' if run else ''}")
    check_number_of_runs(quarantine_table(table), len(rows))
    return {str(quarantined_by): count for quarantined_by, count in rows}


async def _print_preview(context: CommandContext, table: str, selection: RequeueSelection) -> None:
    """Print the first rows with their new values, if DuckDB understands the SQL of the repair."""
    try:
        preview = await preview_requeue(context.client, context.settings.installation, table, selection)
    except (SluiceError, ValueError):  # the requeue goes on without its preview
        return
    shown = with_new_values(preview)
    rows = [[shown_value(value) for value in row] for row in shown.rows]
    if rows:
        title = f"preview of {format_count(len(rows), 'row')}"
        print_rows(context.console, shown.columns, rows, title=title, dim=True)


def _print_taken(context: CommandContext, table: str, counts: Mapping[str, int], selection: RequeueSelection) -> None:
    """Print the quarantined rows that a requeue moves."""
    total, runs = format_count(sum(counts.values()), "row"), format_count(len(counts), "run")
    where = f"; the requeue moves those where {selection.where}" if selection.where else ""
    print_detail(context.console, "from", f"{quarantine_table(table)}: {total} of {runs}{where}")
    for run, count in islice(counts.items(), _SHOWN):
        print_detail(context.console, "run", f"{run}: {format_count(count, 'row')}")
    if len(counts) > _SHOWN:
        print_detail(context.console, "", f"… and {len(counts) - _SHOWN:,} older runs")
    print_detail(context.console, "to", table)
    for repair in selection.values:
        print_detail(context.console, "set", repair)
