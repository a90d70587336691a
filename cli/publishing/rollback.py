"""The command `rollback`: roll a published run back."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from temporalio.client import Client

from cli.confirming import Yes, confirm
from cli.context import CommandContext, run_command
from cli.options import AsJson
from cli.run.follow import start_and_follow
from cli.run.report import print_detail
from runtime.pipeline.pipeline_input import load_pipeline
from runtime.run.find_run import read_request
from runtime.run.start_run import StartOptions
from runtime.short_workflow import query_lake
from sluice.contracts.rollback import PlanRollbackInput, PlanRollbackResult
from sluice.pipeline.model import Pipeline
from sluice.presentation.changes import describe_change
from sluice.publishing.rollback import (
    choose_rollback_pipeline,
    describe_missing_checks,
    describe_older_checks,
    rollback_pipeline,
    tables_without_checks,
)
from sluice.settings import read_environment
from sluice.sizes import format_count


def rollback(
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help="A published run, its commit on main, or a pipeline with one run there."),
    ],
    with_later: Annotated[
        bool, typer.Option("--with-later", help="Roll back later runs that changed the same tables, too.")
    ] = False,
    despite_readers: Annotated[
        bool, typer.Option("--despite-readers", help="Roll back even if the checks of later runs read these tables.")
    ] = False,
    pipeline: Annotated[
        Path | None, typer.Option("--pipeline", help="Audit by the checks of this file, not by those of the run.")
    ] = None,
    allow_partial: Annotated[
        bool,
        typer.Option("--allow-partial", help="Roll back even if the catalog publishes several tables one by one."),
    ] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Start the run, and do not follow it.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Roll a published run back: restore its tables to what they were before it. This starts a new run."""

    def prepare() -> Pipeline | None:
        return load_pipeline(pipeline, read_environment(), Path.cwd()) if pipeline else None

    async def command(context: CommandContext, given: Pipeline | None) -> int:
        query = PlanRollbackInput(run=run, with_later=with_later, despite_readers=despite_readers)
        plan = await query_lake(context.client, context.settings.installation, query, PlanRollbackResult)
        restore = plan.restore
        earlier = None if given or plan.recorded else await _read_pipeline(context.client, plan)
        chosen = choose_rollback_pipeline(plan.pipeline, given, plan.recorded, earlier)
        for reader in plan.readers:
            context.console.print(f"[yellow]Not rolled back:[/] {reader}", highlight=False, soft_wrap=True)
        context.console.print(f"Rolling back {', '.join(restore.runs)}", highlight=False)
        older = {} if given else plan.older
        for line in describe_older_checks(older):
            context.console.print(line, highlight=False, soft_wrap=True)
        checks = {table: published.table for table, published in older.items()}
        audited = rollback_pipeline(chosen, restore.tables, plan.remaining, checks, allow_partial=allow_partial)
        unaudited = tables_without_checks(audited, plan.remaining)
        if unaudited:
            missing = describe_missing_checks(unaudited, chosen.name, is_given=given is not None)
            context.console.print(f"[yellow]Not audited:[/] {escape(missing)}", highlight=False, soft_wrap=True)
        for table, at in restore.tables.items():
            change = f": {describe_change(plan.changes[table])}" if table in plan.changes else ""
            print_detail(context.console, table, f"as on main at {at[:12]}{change}")
        confirm(context, f"Roll back {format_count(len(restore.runs), 'run')}?", yes=yes)
        options = StartOptions(restore=restore)
        fields = {"runs": restore.runs, "tables": sorted(restore.tables), "readers": plan.readers}
        fields["unaudited"] = unaudited
        return await start_and_follow(context, audited, None, options, detach=detach, **fields)

    run_command(command, as_json, prepare)


async def _read_pipeline(client: Client, plan: PlanRollbackResult) -> Pipeline | None:
    """Return the pipeline of the run from Temporal, or None if Temporal no longer has it."""
    request = await read_request(client, plan.workflow_id, plan.restore.runs[-1]) if plan.workflow_id else None
    return request.pipeline if request else None
