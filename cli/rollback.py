"""The command that takes a published run back."""

from typing import Annotated

import typer

from cli.context import CommandContext, no_preparation, run_command
from cli.follow import start_and_follow
from lakehouse.open_catalog import open_catalog
from lakehouse.published_commits import list_published_commits
from runtime.find_run import find_run, read_request
from runtime.start_run import StartOptions
from sluice.contracts.activity_inputs import Restore
from sluice.errors import InvalidPipeline
from sluice.pipeline.model import Pipeline
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write
from sluice.publishing.rollback import RollbackPlan, plan_rollback

app = typer.Typer(add_completion=False)


@app.command()
def rollback(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A published run, or a pipeline: its latest run.")],
    with_later: Annotated[
        bool, typer.Option("--with-later", help="Take later runs that built on it back too.")
    ] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Start the run, and do not follow it.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output.")] = False,
) -> None:
    """Take a published run back: its tables become what they were before it, by one merge. A run of its own."""

    async def command(context: CommandContext, _: None) -> int:
        found = await find_run(context.client, run)
        run_id = found.description.run_id
        catalog = open_catalog(context.settings)
        seen = catalog.initialize_main()
        plan = plan_rollback(list_published_commits(catalog, run_id), run_id, with_later=with_later)
        earlier = await read_request(context.client, found.handle.id, run_id)
        if earlier is None:
            raise InvalidPipeline(f"Temporal has forgotten run {run_id}")
        left = {name for name, at in plan.tables.items() if catalog.table_version(catalog.main, name, at)}
        restore = Restore(runs=plan.runs, main_head=seen, tables=plan.tables)
        context.console.print(f"Rolls back {', '.join(plan.runs)}")
        pipeline = _pipeline(earlier.pipeline, plan, left)
        options = StartOptions(restore=restore)
        fields = {"runs": plan.runs, "tables": sorted(plan.tables)}
        return await start_and_follow(context, pipeline, None, options, detach=detach, **fields)

    run_command(command, as_json, no_preparation)


def _pipeline(earlier: Pipeline, plan: RollbackPlan, left: set[str]) -> Pipeline:
    """Return the pipeline of a roll-back: the checks of whole tables, for those that there will be."""
    tables = {}
    for name in plan.tables:
        checks = earlier.tables[name].checks if name in earlier.tables and name in left else []
        tables[name] = Table(checks=[check for check in checks if check.scope == "table"])
    again = earlier.model_copy(update={"write": Write(job="rollback"), "tables": tables})
    return Pipeline.model_validate(again.model_dump(by_alias=True))
