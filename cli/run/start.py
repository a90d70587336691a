"""The command `run`: start a run of a pipeline, and follow it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cli.arrivals.load import check_start_by_hand
from cli.context import CommandContext, run_command
from cli.options import AsJson, Report
from cli.pipeline.values import OverYounger, Partition, ScheduledFor
from cli.run.follow import start_and_follow, with_options
from runtime.pipeline.pipeline_input import InspectedInput, inspect_input, load_pipeline
from runtime.pipeline.placeholder_values import order_of, placeholder_values
from runtime.run.start_run import StartOptions
from sluice.environment_files import read_environment
from sluice.pipeline.model import Pipeline


def run(
    pipeline: Annotated[
        Path | None,
        typer.Argument(help="A pipeline file; without one, the pipeline of the environment (see .env.example)."),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Publish an input that was published before.")] = False,
    no_publish: Annotated[
        bool, typer.Option("--no-publish", help="Write and audit on a branch, delete it, and end `checked`.")
    ] = False,
    message: Annotated[str | None, typer.Option("--message", help="The message of the merge commit.")] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", metavar="KEY=VALUE", help="Add to the merge commit's metadata; may be repeated."),
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Start the run, and do not follow it.")] = False,
    scheduled_for: ScheduledFor = "",
    partition: Partition = "",
    over_younger: OverYounger = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before loading files of a landing zone that is not deployed.")
    ] = False,
    as_json: AsJson = False,
    report: Report = None,
) -> None:
    """Start a run and follow it. Ctrl-C detaches; the run goes on. `run` may be left out."""

    def prepare() -> tuple[Pipeline, InspectedInput | None]:
        values = placeholder_values(pipeline, scheduled_for, partition)
        loaded = load_pipeline(pipeline, read_environment(), Path.cwd(), values)
        loaded = with_options(loaded, message, metadata or (), publish=not no_publish)
        if loaded.arrival and not no_publish:
            return loaded, None
        inspected = inspect_input(loaded, pipeline)
        _print_hints(inspected.hints)
        return loaded, inspected

    async def command(context: CommandContext, prepared: tuple[Pipeline, InspectedInput | None]) -> int:
        loaded, inspected = prepared
        if not no_publish:
            loaded = await check_start_by_hand(context, loaded, yes=yes)
        inspected = inspected or inspect_input(loaded, pipeline)
        order = order_of(pipeline, scheduled_for, partition, over_younger=over_younger)
        options = StartOptions(again=again, publish=not no_publish, order=order)
        code = await start_and_follow(context, loaded, inspected.run_input, options, detach=detach)
        if not detach:
            _print_hints(inspected.hints)  # repeated: the first print has scrolled far up by now
        return code

    run_command(command, as_json, prepare, report)


def _print_hints(hints: Sequence[str]) -> None:
    for hint in hints:
        print(f"hint: {hint}", file=sys.stderr)
