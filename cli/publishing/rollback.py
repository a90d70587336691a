"""The command `rollback`: roll a published run back."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from cli.confirming import Yes, confirm
from cli.context import CommandContext, run_command
from cli.layout import print_detail
from cli.options import AsJson
from cli.run.follow import start_and_follow
from runtime.pipeline.pipeline_input import load_pipeline
from runtime.publishing.rollback_plan import plan_rollback
from sluice.contracts.rollback import PlanRollbackInput
from sluice.environment_files import read_environment
from sluice.pipeline.model import Pipeline
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
        installation = context.settings.installation
        planned = await plan_rollback(context.client, installation, query, given, allow_partial=allow_partial)
        restore, readers = planned.plan.restore, planned.plan.readers
        for reader in readers:
            context.console.print(f"[yellow]Not rolled back:[/] {reader}", highlight=False, soft_wrap=True)
        context.console.print(f"Rolling back {', '.join(restore.runs)}", highlight=False)
        for line in planned.audits:
            context.console.print(line, highlight=False, soft_wrap=True)
        if planned.not_audited:
            missing = escape(planned.not_audited)
            context.console.print(f"[yellow]Not audited:[/] {missing}", highlight=False, soft_wrap=True)
        for table, effect in planned.effects.items():
            print_detail(context.console, table, effect)
        confirm(context, f"Roll back {format_count(len(restore.runs), 'run')}?", yes=yes)
        fields = {"runs": restore.runs, "tables": sorted(restore.tables), "readers": readers}
        fields["unaudited"] = planned.unaudited
        return await start_and_follow(context, planned.pipeline, None, planned.options, detach=detach, **fields)

    run_command(command, as_json, prepare)
