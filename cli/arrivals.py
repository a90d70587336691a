"""The command for landing zones: which files arrived, what became of each, and what can be done about batches."""

import sys
from datetime import datetime, timezone
from typing import Annotated, cast, get_args

import typer
from rich.markup import escape

from cli.confirming import Yes, confirm
from cli.context import UNREACHABLE, CommandContext, current_user, run_command
from cli.layout import print_entries, visible
from cli.load_arrivals import load_named, named_files
from cli.values import OLDER_ROWS_WIN, OverYounger
from runtime.installation import with_known_installation
from runtime.landing_zones import command_batch, list_zones, look_now, read_zone, split_batch
from runtime.short_workflow import query_lake
from sluice.arrivals.held_batches import decided_states
from sluice.arrivals.limits import room_for_batches
from sluice.contracts.arrivals import (
    Batch,
    BatchCommand,
    FileStatus,
    ListArrivalsInput,
    ListArrivalsResult,
    SplitBatch,
    ZoneStatus,
)
from sluice.errors import InvalidPipeline, ServiceUnavailable
from sluice.presentation.arrivals import describe_batch, describe_batches, describe_counts, describe_file
from sluice.settings import Settings
from sluice.sizes import format_count
from sluice.times import format_time

app = typer.Typer(add_completion=False)

_SHOWN_FILES = 50
"""Maximum number of files of a batch that are listed before a question about it."""


@app.command("arrivals")
def arrivals_command(
    pipeline: Annotated[
        str | None, typer.Argument(metavar="[PIPELINE]", help="A pipeline that is deployed with an `arrival`.")
    ] = None,
    file: Annotated[str, typer.Option("--file", help="Only files whose path has this part.")] = "",
    status: Annotated[
        str | None, typer.Option("--status", help="Only files: waiting, in a batch, loaded, ignored, refused, moved.")
    ] = None,
    limit: Annotated[int, typer.Option(help="How many files, the latest first.", min=1, max=5000)] = 100,
    retry: Annotated[
        str | None, typer.Option("--retry", metavar="BATCH", help="Load a batch that was kept out.")
    ] = None,
    set_aside: Annotated[
        str | None, typer.Option("--set-aside", metavar="BATCH", help="Never load a batch that was kept out.")
    ] = None,
    split: Annotated[
        str | None, typer.Option("--split", metavar="BATCH", help="Load the halves of a batch by themselves.")
    ] = None,
    over_younger: OverYounger = False,
    load: Annotated[
        str | None,
        typer.Option("--load", metavar="FILE...", help="Load files by name: rolled back, overwritten, or waiting."),
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(metavar="[FILE...]", help="More files of --load.")] = None,
    look: Annotated[bool, typer.Option("--look", help="Look at the landing zone now.")] = False,
    yes: Yes = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show what arrived in a landing zone, and what became of each file. Without a pipeline, show all zones."""

    async def command(context: CommandContext, _: None) -> int:
        settings = with_known_installation(context.settings)
        if pipeline is None:
            return await _print_zones(context, settings)
        if over_younger and (retry or split or load):
            context.console.print(OLDER_ROWS_WIN, highlight=False)
        if load:
            return await load_named(
                context, settings, pipeline, named_files(load, more or ()), yes=yes, over_younger=over_younger
            )
        if split:
            await _confirm(context, settings, pipeline, split, "Load its halves by themselves?", yes=yes)
            return await _split(context, settings, pipeline, split, over_younger=over_younger)
        if retry or set_aside:
            asked = "Load it again?" if retry else "Never load it, as long as the zone is deployed?"
            await _confirm(context, settings, pipeline, retry or set_aside or "", asked, yes=yes)
            return await _command(context, settings, pipeline, retry, set_aside, over_younger=over_younger)
        if look:
            await look_now(context.client, settings, pipeline)
            context.print_result(
                {"pipeline": pipeline, "look": True}, f"A look at the landing zone of {pipeline} is asked for."
            )
            return 0
        return await _print_files(context, settings, pipeline, file, _status(status), limit)

    def prepare() -> None:
        _status(status)
        named_files(load, more or ())
        if pipeline is None and (file or status or retry or set_aside or split or load or look):
            raise InvalidPipeline("name the pipeline whose landing zone is meant: `arrivals PIPELINE …`")
        if len([each for each in (retry, set_aside, split, load, look) if each]) > 1:
            raise InvalidPipeline("--retry, --set-aside, --split, --load and --look: give one at a time")

    run_command(command, as_json, prepare)


def _status(text: str | None) -> FileStatus | None:
    if text is None:
        return None
    for status in get_args(FileStatus):
        if text == status:
            return cast(FileStatus, status)
    raise InvalidPipeline(f"{text!r} is no status of a file: there are {', '.join(get_args(FileStatus))}")


async def _confirm(
    context: CommandContext, settings: Settings, pipeline: str, batch: str, question: str, *, yes: bool
) -> None:
    """Show a batch with its files, and ask; the landing zone refuses a batch that it does not hold.

    A batch's id names its files: a batch of other files has another id.
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
                line = f"  {each.path}  arrived {_time(each.arrived_at)}"
                context.console.print(visible(line), highlight=False, soft_wrap=True)
            confirm(context, question, yes=yes)


async def _command(
    context: CommandContext,
    settings: Settings,
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
    until = f", until the landing zone is resumed: {paused}" if paused and now.state == "waiting" else ""
    context.print_result(now.model_dump(mode="json"), f"Batch {batch} of {pipeline}: {now.state}{until}")
    return 0


async def _split(context: CommandContext, settings: Settings, pipeline: str, batch: str, *, over_younger: bool) -> int:
    request = SplitBatch(batch=batch, by=current_user().name, over_younger=over_younger)
    halves = await split_batch(context.client, settings, pipeline, request)
    names = " and ".join(f"{each.ref.id} ({format_count(each.ref.files, 'file')})" for each in halves)
    fields = {"batch": batch, "halves": [each.model_dump(mode="json") for each in halves]}
    context.print_result(fields, f"Batch {batch} of {pipeline} is split into {names}.")
    return 0


async def _print_zones(context: CommandContext, settings: Settings) -> int:
    zones: list[ZoneStatus] = []
    silent: list[str] = []
    for name in await list_zones(context.client, settings):
        try:
            zones.append(await read_zone(context.client, settings, name))
        except ServiceUnavailable as error:
            silent.append(f"{name}: {error}")
    for problem in silent:
        print(problem, file=sys.stderr)
    code = UNREACHABLE if silent else 0
    if context.as_json:
        shown = [zone.model_dump(mode="json", exclude={"pipeline"}) for zone in zones]
        context.print_result({"zones": shown, **({"silent": silent} if silent else {})}, "")
        return code
    if not zones:
        if not silent:
            context.console.print("No pipeline has a landing zone: `deploy DIR` makes those that its files state.")
        return code
    rows = [
        (
            zone.name,
            (zone.paused and f"paused: {zone.paused}") or zone.problem or "open",
            describe_counts(zone.counts),
            describe_batches(zone.batches),
            _time(zone.latest_arrival),
        )
        for zone in zones
    ]
    print_entries(context.console, ("pipeline", "state", "files", "batches", "latest arrival"), rows, beside=1)
    return code


async def _print_files(
    context: CommandContext, settings: Settings, pipeline: str, file: str, status: FileStatus | None, limit: int
) -> int:
    zone = await read_zone(context.client, settings, pipeline)
    if not context.as_json:
        _print_zone(context, zone)
    held = [batch.ref for batch in zone.batches]
    has_room = room_for_batches(zone.batches) > 0
    query = ListArrivalsInput(
        pipeline=zone.pipeline,
        held=held,
        states=decided_states(zone.batches),
        has_room=has_room,
        file=file,
        status=status,
        limit=limit,
    )
    listed = await query_lake(context.client, settings, query, ListArrivalsResult)
    if context.as_json:
        fields = zone.model_dump(mode="json", exclude={"pipeline"})
        context.print_result({**fields, **listed.model_dump(mode="json")}, "")
        return 0
    rows = [
        (each.path.replace("\n", "\\n"), *describe_file(each, zone, listed.runs), _time(each.arrived_at))
        for each in listed.files
    ]
    if rows:
        print_entries(context.console, ("file", "state", "why", "arrived"), rows, beside=1)
    elif file:
        text = f"No file with {file!r} in its path is in the landing zone. Names that begin with _ or . are not listed."
        context.console.print(escape(text), highlight=False)
    total = sum(listed.counts.values())
    counts = describe_counts(listed.counts)
    context.console.print(
        f"{format_count(total, 'file')}: {counts}" if total else "No files are there.", highlight=False
    )
    if not status and not file and total > len(listed.files):
        context.console.print("Not all are shown: narrow it by --file or --status, or raise --limit", highlight=False)
    return 0


def _print_zone(context: CommandContext, zone: ZoneStatus) -> None:
    if zone.paused:
        text = f"paused: {escape(zone.paused)}; `resume {zone.name}` goes on"
        context.console.print(text, highlight=False, soft_wrap=True)
    if zone.resumed:
        context.console.print(f"resumed: {escape(zone.resumed)}", highlight=False, soft_wrap=True)
    if zone.problem:
        print(f"problem: {zone.problem}", file=sys.stderr)
    if zone.unfinished:
        print(f"after: {zone.unfinished}", file=sys.stderr)
    for batch in _kept_out(zone.batches):
        text = f"batch {batch.ref.id}: {describe_batch(batch)}: {batch.reason}"
        context.console.print(escape(text), highlight=False, soft_wrap=True)
    if _kept_out(zone.batches):
        asked = " or ".join(f"`arrivals {zone.name} --{each} BATCH`" for each in ("retry", "split", "set-aside"))
        context.console.print(f"decide about a batch by {asked}", highlight=False, soft_wrap=True)


def _kept_out(batches: list[Batch]) -> list[Batch]:
    return [batch for batch in batches if batch.state == "kept out"]


def _time(timestamp: float | None) -> str:
    return "never" if timestamp is None else format_time(datetime.fromtimestamp(timestamp, timezone.utc).isoformat())
