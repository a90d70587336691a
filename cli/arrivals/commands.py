"""The command `arrivals`: list landing zones and their files, and act on batches."""

import sys
from typing import Annotated, cast, get_args

import typer
from rich.markup import escape

from cli.arrivals.actions import ArrivalAction, run_action
from cli.arrivals.load import named_files
from cli.confirming import Yes
from cli.context import CommandContext, run_command
from cli.exit_codes import UNREACHABLE
from cli.layout import print_entries
from cli.options import AsJson
from cli.pipeline.values import OverYounger
from cli.program import program
from runtime.arrivals.landing_zones import read_zone, read_zones
from runtime.arrivals.zone_files import list_zone_files
from runtime.installation.identity import with_known_installation
from sluice.arrivals.splitting import split_refusal
from sluice.contracts.arrivals import (
    Batch,
    FileStatus,
    ZoneStatus,
)
from sluice.errors import InvalidPipeline
from sluice.presentation.arrivals import (
    describe_batch,
    describe_batches,
    describe_file,
    describe_files,
    describe_listing,
    describe_no_match,
    format_arrival,
)
from sluice.setting_groups import InstallationSettings


def arrivals_command(
    pipeline: Annotated[
        str | None, typer.Argument(metavar="[PIPELINE]", help="A pipeline that is deployed with an `arrival`.")
    ] = None,
    file: Annotated[str, typer.Option("--file", help="Only files whose path has this part.")] = "",
    status: Annotated[
        str | None,
        typer.Option(
            "--status", help="Only files in this state: waiting, in a batch, loaded, ignored, refused, moved."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(help="Maximum number of files to show.", min=1, max=5000)] = 100,
    retry: Annotated[
        str | None, typer.Option("--retry", metavar="BATCH", help="Load a batch that was kept out.")
    ] = None,
    set_aside: Annotated[
        str | None,
        typer.Option(
            "--set-aside",
            metavar="BATCH",
            help="Do not load a batch that was kept out, as long as the zone is deployed.",
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option("--split", metavar="BATCH", help="Split a batch, and load each half separately.")
    ] = None,
    over_younger: OverYounger = False,
    load: Annotated[
        str | None,
        typer.Option("--load", metavar="FILE...", help="Load files by name: rolled back, overwritten, or waiting."),
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(metavar="[FILE...]", help="More files of --load.")] = None,
    look: Annotated[bool, typer.Option("--look", help="List the landing zone's files now.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Show the files of a landing zone with their states. Without a pipeline, show all zones."""

    async def command(context: CommandContext, action: ArrivalAction) -> int:
        settings = with_known_installation(context.settings)
        if pipeline is None:
            return await _print_zones(context, settings.installation)
        if action.is_none:
            return await _print_files(context, settings.installation, pipeline, file, _status(status), limit)
        return await run_action(context, settings.installation, pipeline, action, yes=yes)

    def prepare() -> ArrivalAction:
        _status(status)
        action = ArrivalAction(retry, set_aside, split, named_files(load, more or ()), look, over_younger)
        action.check()
        if pipeline is None and (file or status or not action.is_none):
            raise InvalidPipeline("name the pipeline whose landing zone is meant: `arrivals PIPELINE …`")
        return action

    run_command(command, as_json, prepare, read_only=not any((retry, set_aside, split, load, look)))


def _status(text: str | None) -> FileStatus | None:
    if text is None:
        return None
    for status in get_args(FileStatus):
        if text == status:
            return cast(FileStatus, status)
    raise InvalidPipeline(f"{text!r} is not a status of a file: use one of {', '.join(get_args(FileStatus))}")


async def _print_zones(context: CommandContext, settings: InstallationSettings) -> int:
    zones, errors = await read_zones(context.client, settings)
    silent = [f"{name}: {error}" for name, error in errors.items()]
    for problem in silent:
        print(problem, file=sys.stderr)
    code = UNREACHABLE if silent else 0
    if context.as_json:
        shown = [zone.model_dump(mode="json", exclude={"pipeline"}) for zone in zones]
        context.print_result({"zones": shown, **({"silent": silent} if silent else {})}, "")
        return code
    if not zones:
        if not silent:
            context.console.print(
                "No pipeline has a landing zone: `deploy DIR` makes one for each file with an `arrival`."
            )
        return code
    rows = [
        (
            zone.name,
            (zone.paused and f"paused: {zone.paused}") or zone.problem or "open",
            describe_files(zone, zone.batches),
            describe_batches(zone.batches),
            format_arrival(zone.latest_arrival),
        )
        for zone in zones
    ]
    print_entries(context.console, ("pipeline", "state", "files", "batches", "latest arrival"), rows, in_first_line=1)
    return code


async def _print_files(
    context: CommandContext,
    settings: InstallationSettings,
    pipeline: str,
    file: str,
    status: FileStatus | None,
    limit: int,
) -> int:
    zone = await read_zone(context.client, settings, pipeline)
    if not context.as_json:
        _print_zone(context, zone)
    listed = await list_zone_files(context.client, settings, zone, file, status, limit)
    if context.as_json:
        fields = zone.model_dump(mode="json", exclude={"pipeline"})
        context.print_result({**fields, **listed.model_dump(mode="json")}, "")
        return 0
    rows = [
        (each.path.replace("\n", "\\n"), *describe_file(each, zone, listed.runs), format_arrival(each.arrived_at))
        for each in listed.files
    ]
    if rows:
        print_entries(context.console, ("file", "state", "why", "arrived"), rows, in_first_line=1)
    elif file or status:
        context.console.print(escape(describe_no_match(file, status)), highlight=False)
    context.console.print(describe_listing(listed, zone.batches, status), highlight=False)
    if not status and not file and sum(listed.counts.values()) > len(listed.files):
        context.console.print(
            "Not all files are shown: narrow the list by --file or --status, or raise --limit", highlight=False
        )
    return 0


def _print_zone(context: CommandContext, zone: ZoneStatus) -> None:
    if zone.paused:
        text = f"paused: {escape(zone.paused)}; resume it with `resume {zone.name}`"
        context.console.print(text, highlight=False, soft_wrap=True)
    if zone.resumed:
        context.console.print(f"resumed: {escape(zone.resumed)}", highlight=False, soft_wrap=True)
    if zone.problem:
        print(f"problem: {zone.problem}", file=sys.stderr)
    if zone.unfinished:
        print(f"could not tag or move loaded files: {zone.unfinished}", file=sys.stderr)
    for batch in _kept_out(zone.batches):
        text = f"batch {batch.ref.id}: {describe_batch(batch)}: {batch.reason}"
        context.console.print(escape(text), highlight=False, soft_wrap=True)
    if _kept_out(zone.batches):
        options = ("retry", "set-aside") if split_refusal(zone.name, zone.pipeline) else ("retry", "split", "set-aside")
        asked = " or ".join(f"`{program()} arrivals {zone.name} --{each} BATCH`" for each in options)
        context.console.print(f"decide about a batch by {asked}", highlight=False, soft_wrap=True)


def _kept_out(batches: list[Batch]) -> list[Batch]:
    return [batch for batch in batches if batch.state == "kept out"]
