"""The command `run`: start a run of a pipeline, and follow it."""

from pathlib import Path
from typing import Annotated

import typer

from cli.options import AsJson, Report
from cli.pipeline.values import OverYounger, Partition, ScheduledFor


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

    from cli.run.start_pipeline import RunOptions, start_pipeline  # noqa: PLC0415  # two seconds, which help saves

    options = RunOptions(
        again=again,
        no_publish=no_publish,
        message=message,
        metadata=metadata or (),
        detach=detach,
        scheduled_for=scheduled_for,
        partition=partition,
        over_younger=over_younger,
        yes=yes,
    )
    start_pipeline(pipeline, options, as_json=as_json, report=report)
