"""The command that rolls a published run back."""

from typing import Annotated

import typer

from cli.context import CommandContext, no_preparation, run_command
from cli.follow import start_and_follow
from runtime.find_run import find_run, read_request
from runtime.short_workflow import query_lake
from runtime.start_run import StartOptions
from sluice.contracts.lake_queries import PlanRollbackInput, PlanRollbackResult
from sluice.errors import InvalidPipeline
from sluice.publishing.rollback import rollback_pipeline

app = typer.Typer(add_completion=False)


@app.command()
def rollback(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A published run, or a pipeline: its latest run.")],
    with_later: Annotated[
        bool, typer.Option("--with-later", help="Roll back later runs that changed the same tables, too.")
    ] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Start the run, and do not follow it.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output.")] = False,
) -> None:
    """Roll a published run back: restore its tables to what they were before it. This starts a new run."""

    async def command(context: CommandContext, _: None) -> int:
        lookup = await find_run(context.client, run)
        run_id = lookup.description.run_id
        query = PlanRollbackInput(run_id=run_id, with_later=with_later)
        plan = await query_lake(context.client, context.settings, query, PlanRollbackResult)
        earlier = await read_request(context.client, lookup.handle.id, run_id)
        if earlier is None:
            raise InvalidPipeline(f"Temporal no longer has the history of run {run_id}")
        restore = plan.restore
        pipeline = rollback_pipeline(earlier.pipeline, restore.tables, plan.remaining)
        context.console.print(f"Rolling back {', '.join(restore.runs)}", highlight=False)
        options = StartOptions(restore=restore)
        fields = {"runs": restore.runs, "tables": sorted(restore.tables)}
        return await start_and_follow(context, pipeline, None, options, detach=detach, **fields)

    run_command(command, as_json, no_preparation)
