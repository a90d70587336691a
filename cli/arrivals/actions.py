"""Actions on a landing zone and its batches: retry, set aside, split, load files by name, list the folder now."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.markup import escape

from cli.arrivals.load import load_named
from cli.confirming import confirm
from cli.context import CommandContext, current_user
from cli.layout import visible
from cli.pipeline.values import OLDER_ROWS_WIN
from runtime.arrivals.landing_zones import command_batch, list_now, read_zone, split_batch
from runtime.short_workflow import query_lake
from sluice.arrivals.splitting import split_refusal
from sluice.contracts.arrivals import ListArrivalsInput, ListArrivalsResult
from sluice.contracts.zone_requests import BatchCommand, SplitBatch
from sluice.errors import InvalidPipeline
from sluice.presentation.arrivals import describe_batch, format_arrival
from sluice.setting_groups import InstallationSettings
from sluice.sizes import format_count

_SHOWN_FILES = 50
"""Maximum number of files of a batch that are listed before a question about it."""


@dataclass(frozen=True)
class ArrivalAction:
    """The action that a person requests: at most one of the first five fields is set."""

    retry: str | None = None
    set_aside: str | None = None
    split: str | None = None
    load: Sequence[str] = ()
    look: bool = False
    over_younger: bool = False

    @property
    def is_none(self) -> bool:
        """True if no action is requested."""
        return not any(self._requested)

    @property
    def _requested(self) -> tuple[object, ...]:
        return self.retry, self.set_aside, self.split, self.load, self.look

    def check(self) -> None:
        """Check that at most one action is requested.

        Raises:
            InvalidPipeline: several are requested.
        """
        if sum(map(bool, self._requested)) > 1:
            raise InvalidPipeline("--retry, --set-aside, --split, --load and --look: give one at a time")


async def run_action(
    context: CommandContext, settings: InstallationSettings, pipeline: str, action: ArrivalAction, *, yes: bool
) -> int:
    """Perform an action on the landing zone of a pipeline, after confirmation. Return the exit code."""
    over_younger = action.over_younger
    if over_younger and (action.retry or action.split or action.load):
        context.console.print(OLDER_ROWS_WIN, highlight=False)
    if action.load:
        return await load_named(context, settings, pipeline, action.load, yes=yes, over_younger=over_younger)
    if action.split:
        await _check_split(context, settings, pipeline)
        await _confirm(context, settings, pipeline, action.split, "Load each half separately?", yes=yes)
        return await _split(context, settings, pipeline, action.split, over_younger=over_younger)
    if batch := action.retry or action.set_aside:
        question = "Load it again?" if action.retry else "Never load it while the zone is deployed?"
        await _confirm(context, settings, pipeline, batch, question, yes=yes)
        return await _command(context, settings, pipeline, action.retry, action.set_aside, over_younger=over_younger)
    await list_now(context.client, settings, pipeline)
    text = f"Asked the landing zone of {pipeline} to list its files now."
    context.print_result({"pipeline": pipeline, "look": True}, text)
    return 0


async def _confirm(
    context: CommandContext, settings: InstallationSettings, pipeline: str, batch: str, question: str, *, yes: bool
) -> None:
    """Show a batch with its files, and ask for confirmation.

    The landing zone itself refuses an unknown batch. A batch id identifies its files: other files have another id.
    """
    zone = await read_zone(context.client, settings, pipeline)
    for held in zone.batches:
        if held.ref.id == batch:
            refs = [each.ref for each in zone.batches]
            query = ListArrivalsInput(pipeline=zone.pipeline, held=refs, has_room=True, status="in a batch", limit=5000)
            files = (await query_lake(context.client, settings, query, ListArrivalsResult)).files
            text = f"batch {batch}: {describe_batch(held)}: {held.reason}"
            context.console.print(escape(text), highlight=False, soft_wrap=True)
            for each in [each for each in files if each.detail == batch][:_SHOWN_FILES]:
                line = f"  {each.path}  arrived {format_arrival(each.arrived_at)}"
                context.console.print(visible(line), highlight=False, soft_wrap=True)
            confirm(context, question, yes=yes)


async def _command(
    context: CommandContext,
    settings: InstallationSettings,
    pipeline: str,
    retry: str | None,
    set_aside: str | None,
    *,
    over_younger: bool,
) -> int:
    action, batch = ("retry", retry) if retry else ("set aside", set_aside)
    fields = {"action": action, "batch": batch, "by": current_user().name, "over_younger": over_younger}
    request = BatchCommand.model_validate(fields)
    now = await command_batch(context.client, settings, pipeline, request)
    paused = (await read_zone(context.client, settings, pipeline)).paused
    is_held = paused and now.state == "waiting"
    hint = f"; the landing zone is paused ({paused}): resume it with `resume {pipeline}`" if is_held else ""
    context.print_result(now.model_dump(mode="json"), f"Batch {batch} of {pipeline}: {now.state}{hint}")
    return 0


async def _check_split(context: CommandContext, settings: InstallationSettings, pipeline: str) -> None:
    """Check before the question that the landing zone will not refuse a split. Raises `InvalidPipeline` if it will."""
    zone = await read_zone(context.client, settings, pipeline)
    if refusal := split_refusal(zone.name, zone.pipeline):
        raise InvalidPipeline(refusal)


async def _split(
    context: CommandContext, settings: InstallationSettings, pipeline: str, batch: str, *, over_younger: bool
) -> int:
    request = SplitBatch(batch=batch, by=current_user().name, over_younger=over_younger)
    halves = await split_batch(context.client, settings, pipeline, request)
    names = " and ".join(f"{each.ref.id} ({format_count(each.ref.files, 'file')})" for each in halves)
    fields = {"batch": batch, "halves": [each.model_dump(mode="json") for each in halves]}
    context.print_result(fields, f"Batch {batch} of {pipeline} is split into {names}.")
    return 0
