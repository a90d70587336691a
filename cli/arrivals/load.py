"""Load named files through a deployed landing zone, or the files of a zone that is not deployed."""

import sys
from collections.abc import Sequence

from cli.confirming import confirm
from cli.context import CommandContext, current_user
from cli.layout import visible
from runtime.arrivals.conflicting_starts import find_zone_problems, refuse_start_past_zone
from runtime.arrivals.landing_zones import load_batch, read_zone
from runtime.arrivals.unsettled_files import absolute_name, list_for_start, with_files
from runtime.pipeline.pipeline_input import pipeline_of_text
from runtime.short_workflow import query_lake
from sluice.arrivals.held_batches import decided_states
from sluice.command_line import OVER_YOUNGER
from sluice.contracts.zone_loads import MOST_NAMED, LoadBatch, LoadPlan, PlanLoadInput
from sluice.errors import InvalidPipeline
from sluice.pipeline.model import Pipeline
from sluice.setting_groups import InstallationSettings
from sluice.sizes import format_count, format_size

_NOT_STARTED = "nothing was started"


async def load_named(
    context: CommandContext,
    settings: InstallationSettings,
    pipeline: str,
    files: Sequence[str],
    *,
    yes: bool,
    over_younger: bool,
) -> int:
    """Show which of the named files a landing zone can load, ask for confirmation, and let the zone load these."""
    zone = await read_zone(context.client, settings, pipeline)
    query = PlanLoadInput(
        pipeline=zone.pipeline,
        held=[batch.ref for batch in zone.batches],
        states=decided_states(zone.batches),
        paths=[absolute_name(file) for file in files],
    )
    plan = await query_lake(context.client, settings, query, LoadPlan)
    for file in plan.files:
        verb = "load" if file.is_loadable else "leave"
        size = f" ({format_size(file.size)})" if file.size else ""
        context.console.print(visible(f"{verb} {file.path}{size}: {file.reason}"), highlight=False, soft_wrap=True)
    if plan.batch is None:
        raise InvalidPipeline(f"none of these files can be loaded: `arrivals {pipeline}` shows the state of each")
    if not over_younger and pipeline_of_text(zone.pipeline).write.traits.order_matters:
        _refuse_older(plan)
    confirm(context, f"Load {format_count(plan.batch.files, 'file')}?", yes=yes, refused=_NOT_STARTED)
    request = LoadBatch(ref=plan.batch, by=current_user().name, over_younger=over_younger)
    batch = await load_batch(context.client, settings, pipeline, request)
    fields = {"batch": batch.model_dump(mode="json"), "files": [file.model_dump() for file in plan.files]}
    paused = f" after `resume {pipeline}`, since it is paused ({zone.paused})" if zone.paused else ""
    context.print_result(
        fields, f"The landing zone of {pipeline} loads batch {batch.ref.id}{paused}. `arrivals {pipeline}` shows it."
    )
    return 0


def _refuse_older(plan: LoadPlan) -> None:
    """Refuse to load a file whose rows may be older than those of main.

    Raises:
        InvalidPipeline: a file was rolled back, or is a copy, and later files may have been loaded since.
    """
    if copy := next((file for file in plan.files if file.may_be_older), None):
        raise InvalidPipeline(f"{copy.reason}: add it, or leave the file out")
    if older := next((file.path for file in plan.files if file.was_rolled_back), None):
        raise InvalidPipeline(
            f"{older} was rolled back, and its rows would replace newer rows of files that were loaded since: "
            f"leave it out, or let the older rows win by {OVER_YOUNGER}"
        )


async def check_start_by_hand(context: CommandContext, pipeline: Pipeline, *, yes: bool) -> Pipeline:
    """Check that a manual start does not bypass a landing zone. Return the pipeline to start.

    If the pipeline has an arrival that is not deployed, its files are shown and confirmed. The returned pipeline loads
    exactly these files.

    Raises:
        InvalidPipeline: its landing zone is deployed, there is no file to load, or nobody confirms. A source with files
            of another pipeline's zone needs a confirmation, too.
    """
    settings = context.settings
    if pipeline.arrival is None:
        if problems := await find_zone_problems(context.client, settings.installation, pipeline):
            print("\n".join(problems), file=sys.stderr)
            confirm(context, "Start the run anyway?", yes=yes, refused=_NOT_STARTED)
        return pipeline
    await refuse_start_past_zone(context.client, settings.installation, pipeline.name)
    chosen, left_out = list_for_start(pipeline)
    for path, reason in left_out:
        context.console.print(visible(f"leave {path}: {reason}"), highlight=False, soft_wrap=True)
    for path in chosen:
        context.console.print(visible(f"load {path}"), highlight=False, soft_wrap=True)
    if not chosen:
        raise InvalidPipeline(
            f"there is no file to load in {pipeline.arrival.from_}: after `deploy`, the landing zone loads files that "
            "arrive later"
        )
    question = f"The landing zone is not deployed. Load {format_count(len(chosen), 'file')}?"
    confirm(context, question, yes=yes, refused=_NOT_STARTED)
    return with_files(pipeline, chosen)


def named_files(first: str | None, more: Sequence[str]) -> list[str]:
    """Return the files of `--load`.

    Raises:
        InvalidPipeline: files are named without `--load`, or too many are named.
    """
    if first is None:
        if more:
            raise InvalidPipeline(f"unexpected argument {more[0]!r}: name files with --load FILE...")
        return []
    if len(more) >= MOST_NAMED:
        raise InvalidPipeline(f"--load takes {MOST_NAMED} files at a time, and {len(more) + 1:,} are named")
    return [first, *more]
