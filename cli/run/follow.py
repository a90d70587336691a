"""Start a run and follow it, for the commands that start runs."""

import sys
from collections.abc import Collection, Sequence
from dataclasses import replace

from cli.context import CommandContext, current_user
from cli.pipeline.values import OLDER_ROWS_WIN, ROWS_MAY_REPEAT
from cli.program import next_commands
from cli.run.report import report_result
from cli.run.watch import watch_run
from runtime.publishing.publish_plan import plan_publish
from runtime.run.find_run import RunLookup, find_run
from runtime.run.start_run import StartOptions, start_run
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.run_request import RunInput
from sluice.errors import InvalidPipeline, ServiceUnavailable
from sluice.pipeline.model import Pipeline
from sluice.pipeline.publish_options import changed_options
from sluice.presentation.changes import describe_guarantee
from sluice.publishing.bad_rows import with_quarantine_tables

_DETACHED = "Detached; the run goes on. `watch` follows it again, `cancel` ends it."
_UNKNOWN = "The run starts, and ends as invalid if the catalog cannot publish its tables as the pipeline requires"
_STARTING = "Interrupted; the run may have been started anyway: `list` shows it."


async def start_and_follow(
    context: CommandContext,
    pipeline: Pipeline,
    run_input: RunInput | None,
    options: StartOptions,
    *,
    detach: bool,
    tables: Collection[str] | None = None,
    **fields: list[str],
) -> int:
    """Start a run; unless `detach`, follow it to its end and report it. Return the exit code.

    Nothing starts if the catalog cannot publish the tables of the run as its pipeline requires.

    Args:
        tables: the tables that the run may change; None means the tables of the pipeline and their quarantine tables.
        fields: additional fields that `--json` prints for a run that is not followed.
    """
    guarantee = await _ask_guarantee(context, pipeline, tables, options.checked_order)
    options = replace(options, guarantee=guarantee)
    if options.order.over_younger:
        adds_rows = bool(options.order.files_of_runs)
        context.console.print(ROWS_MAY_REPEAT if adds_rows else OLDER_ROWS_WIN, highlight=False)
    context.interruption.message = _STARTING
    started = await start_run(context.client, context.settings, pipeline, run_input, current_user(), options)
    context.interruption.message = _DETACHED
    workflow_id = started.handle.id
    run_id = started.handle.run_id or started.handle.first_execution_run_id or ""
    context.console.print(f"{'Attached to' if started.attached else 'Started'} run [bold]{workflow_id}[/]")
    page = context.settings.installation.page_of_run(workflow_id, run_id)
    for link in filter(None, (page, context.link(workflow_id, run_id))):
        context.console.print(f"[dim]{link}[/]", highlight=False, soft_wrap=True)
    if detach:
        await context.hint_at_missing_worker(workflow_id)
        ids = {"workflow_id": workflow_id, "run_id": run_id, "pipeline": pipeline.name}
        context.print_result({**ids, **fields}, next_commands(workflow_id))
        return 0
    released = options.resume.run_id if options.resume else ""
    return await follow_and_report(context, await find_run(context.client, workflow_id), released)


async def _ask_guarantee(
    context: CommandContext, pipeline: Pipeline, tables: Collection[str] | None, order: LoadOrder
) -> str:
    """Return the guarantee of the publish, and print it if several tables are published.

    If no worker answers, the run itself determines the guarantee when it begins.
    """
    try:
        guarantee = (
            await plan_publish(context.client, context.settings.installation, pipeline, tables, order)
        ).guarantee
    except ServiceUnavailable as error:
        print(f"hint: the guarantee of the publish is not known yet: {error}. {_UNKNOWN}", file=sys.stderr)
        return ""
    changed = with_quarantine_tables(pipeline.tables) if tables is None else tables
    if len(changed) > 1 or guarantee != "atomic":  # a single table is always atomic: no line is needed
        context.console.print(f"Guarantee: {describe_guarantee(guarantee)}", highlight=False, soft_wrap=True)
    return guarantee


async def follow_and_report(context: CommandContext, run: RunLookup, released: str = "") -> int:
    """Follow a run to its end, report it, and return its exit code."""
    context.interruption.message = _DETACHED
    followed = await watch_run(context.client, run.handle, context.console)
    return report_result(context, followed.result, with_verdicts=not followed.verdicts_shown, released=released)


def with_options(loaded: Pipeline, message: str | None, metadata: Sequence[str], *, publish: bool) -> Pipeline:
    """Return a pipeline with the message and metadata that this start gives to its merge commit.

    Raises:
        InvalidPipeline: they are not valid, or there will be no merge.
    """
    if message is None and not metadata:
        return loaded
    if not publish:
        raise InvalidPipeline("--message and --metadata describe a merge; --no-publish does not merge: leave one out")
    return loaded.model_copy(update={"publish": changed_options(loaded.publish, message, metadata)})
