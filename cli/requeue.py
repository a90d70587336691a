"""The command that requeues quarantined rows: it runs them through their pipeline again, repaired."""

from pathlib import Path
from typing import Annotated

import typer

from cli.context import CommandContext, run_command
from cli.follow import start_and_follow
from cli.values import OverYounger
from runtime.pipeline_input import load_pipeline
from runtime.short_workflow import query_lake
from runtime.start_run import StartOptions
from sluice.contracts.lake_queries import PlanRequeueInput, RequeuePlan, RequeueSelection
from sluice.contracts.load_order import LoadOrder
from sluice.pipeline.model import Pipeline
from sluice.settings import read_environment

app = typer.Typer(add_completion=False)


@app.command()
def requeue(
    pipeline: Annotated[Path, typer.Argument(help="The pipeline file whose run quarantined the rows.")],
    table: Annotated[str | None, typer.Option(help="The table, where the pipeline has several.")] = None,
    run: Annotated[str | None, typer.Option(help="Only rows that this run (its id) quarantined.")] = None,
    where: Annotated[str | None, typer.Option(help="Only rows for which this condition is true.")] = None,
    repairs: Annotated[
        list[str] | None, typer.Option("--set", metavar="COLUMN=SQL", help="A repair: the new value of a column.")
    ] = None,
    over_younger: OverYounger = False,
    detach: Annotated[bool, typer.Option("--detach", help="Start the run, and do not follow it.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output.")] = False,
) -> None:
    """Move rows of a quarantine table back into their table, repaired and audited again. This starts a new run."""
    selection = RequeueSelection(table=table, run=run, where=where, values=repairs or [])

    def prepare() -> Pipeline:
        return load_pipeline(pipeline, read_environment(), Path.cwd())

    async def command(context: CommandContext, loaded: Pipeline) -> int:
        query = PlanRequeueInput(pipeline=loaded, selection=selection)
        plan = await query_lake(context.client, context.settings, query, RequeuePlan)
        options = StartOptions(order=LoadOrder(runs=plan.runs, over_younger=over_younger))
        return await start_and_follow(context, plan.pipeline, plan.input, options, detach=detach)

    run_command(command, as_json, prepare)
