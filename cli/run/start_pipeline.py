"""Start a run of a pipeline with the options of the command `run`, and follow it."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.arrivals.load import check_start_by_hand
from cli.context import CommandContext, run_command
from cli.options import ReportFormat
from cli.run.follow import start_and_follow, with_options
from runtime.pipeline.pipeline_input import InspectedInput, inspect_input, load_pipeline
from runtime.pipeline.placeholder_values import order_of, placeholder_values
from runtime.run.start_run import StartOptions
from sluice.contracts.load_order import LoadOrder
from sluice.environment_files import read_environment
from sluice.pipeline.model import Pipeline


@dataclass(frozen=True)
class RunOptions:
    """Options of the command `run`, by their names."""

    again: bool
    no_publish: bool
    message: str | None
    metadata: Sequence[str]
    detach: bool
    scheduled_for: str
    partition: str
    over_younger: bool
    yes: bool


def start_pipeline(pipeline: Path | None, options: RunOptions, *, as_json: bool, report: ReportFormat | None) -> None:
    """Start a run of a pipeline file, or of the pipeline of the environment; follow it unless `detach`."""

    def prepare() -> tuple[Pipeline, InspectedInput | None]:
        values = placeholder_values(pipeline, options.scheduled_for, options.partition)
        loaded = load_pipeline(pipeline, read_environment(), Path.cwd(), values)
        loaded = with_options(loaded, options.message, options.metadata, publish=not options.no_publish)
        if loaded.arrival and not options.no_publish:
            return loaded, None
        inspected = inspect_input(loaded, pipeline)
        _print_hints(inspected.hints)
        return loaded, inspected

    async def command(context: CommandContext, prepared: tuple[Pipeline, InspectedInput | None]) -> int:
        loaded, inspected = prepared
        if not options.no_publish:
            loaded = await check_start_by_hand(context, loaded, yes=options.yes)
        inspected = inspected or inspect_input(loaded, pipeline)
        order = order_of(pipeline, options.scheduled_for, options.partition, over_younger=options.over_younger)
        start = start_options(loaded, order, again=options.again, publish=not options.no_publish)
        code = await start_and_follow(context, loaded, inspected.run_input, start, detach=options.detach)
        if not options.detach:
            _print_hints(inspected.hints)  # repeated: the first print has scrolled far up by now
        return code

    run_command(command, as_json, prepare, report)


def start_options(pipeline: Pipeline, order: LoadOrder, *, again: bool, publish: bool) -> StartOptions:
    """Return the options of a start by hand.

    Only a deployed landing zone decides about overwritten files. Without one, the run refuses them unless the pipeline
    says `overwritten: load`.
    """
    overwritten = pipeline.arrival.overwritten if pipeline.arrival else None
    refuses_overwritten = overwritten in ("ignore", "alert")
    return StartOptions(
        again=again,
        publish=publish,
        one_content_per_path=refuses_overwritten and publish and not again,
        loads_all_contents=overwritten == "load",
        order=order,
    )


def _print_hints(hints: Sequence[str]) -> None:
    for hint in hints:
        print(f"hint: {hint}", file=sys.stderr)
