"""The command `check`: check a pipeline file and its input without a run or a server."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from cli.local import check_locally
from cli.options import AsJson
from cli.pipeline.values import Partition, ScheduledFor
from runtime.arrivals.zone_conflicts import check_location, hint_at_zones
from runtime.pipeline.pipeline_input import InspectedInput, inspect_input, load_pipeline
from runtime.pipeline.placeholder_values import placeholder_values
from sluice.contracts.run_request import RunInput
from sluice.environment_files import read_environment
from sluice.errors import NoFiles
from sluice.pipeline.input_columns import columns_of_table
from sluice.pipeline.model import Pipeline
from sluice.presentation.schedules import describe_schedule
from sluice.presentation.type_preview import describe_preview
from sluice.settings import read_settings
from sluice.sizes import format_count, format_list, format_size

_SHOWN = 20
"""Maximum number of columns that are named."""

PipelineFile = Annotated[
    Path | None,
    typer.Argument(help="A pipeline file; without one, the pipeline of the environment (see .env.example)."),
]


def check_pipeline(
    pipeline: PipelineFile = None, scheduled_for: ScheduledFor = "", partition: Partition = "", as_json: AsJson = False
) -> None:
    """Check a pipeline file, its files and their columns. This needs no server and runs nothing."""

    def check() -> None:
        loaded, inspected = inspect_file(pipeline, scheduled_for, partition)
        if as_json:
            print(json.dumps(result_fields(loaded, inspected)))
            return
        from cli.pipeline.sentences import print_check  # noqa: PLC0415  # --json does not need rich

        print_check(loaded, inspected)

    check_locally(check, as_json)


def inspect_file(file: Path | None, scheduled_for: str, partition: str) -> tuple[Pipeline, InspectedInput]:
    """Read a pipeline file, and inspect its input.

    Raises:
        InvalidInput: the input is missing or broken.
        InvalidPipeline: the pipeline is wrong, or does not fit its input.
    """
    values = placeholder_values(file, scheduled_for, partition)
    loaded = load_pipeline(file, read_environment(), Path.cwd(), values)
    check_location(loaded, read_settings(read_environment()).storage, Path.cwd())
    hints = hint_at_zones(loaded, file, Path.cwd()) if file else []
    try:
        inspected = inspect_input(loaded, file)
        return loaded, replace(inspected, hints=[*inspected.hints, *hints])
    except NoFiles:
        if loaded.arrival is None:
            raise
        text = (
            f"no file has arrived in {loaded.arrival.from_} yet: after `deploy`, the landing zone loads arriving files"
        )
        return loaded, InspectedInput(RunInput(digest=""), hints=[text, *hints])


def result_fields(pipeline: Pipeline, inspected: InspectedInput) -> dict[str, object]:
    """Return the result of the check for --json."""
    return {
        "pipeline": pipeline.name,
        "valid": True,
        "tables": {name: len(table.checks) for name, table in pipeline.tables.items()},
        "files": inspected.run_input.files,
        "bytes": inspected.run_input.bytes,
        "columns": inspected.columns,
        "guessed_types": [each.model_dump() for each in inspected.types.columns],
        "schedule": pipeline.schedule.model_dump() if pipeline.schedule else None,
        "hints": inspected.hints,
    }


def describe_result(pipeline: Pipeline, inspected: InspectedInput) -> list[str]:
    """Return the result of the check in sentences, without its hints."""
    checks = sum(len(table.checks) for table in pipeline.tables.values())
    lines = [f"{pipeline.name} is valid: {format_count(checks, 'check')} of {', '.join(pipeline.tables)}."]
    loaded = inspected.run_input
    if loaded.files:
        lines.append(f"Its source has {format_count(loaded.files, 'file')}, {format_size(loaded.bytes)}.")
    if inspected.columns is not None:
        lines.append(f"Columns: {format_list(inspected.columns, _SHOWN)}.")
    if types := describe_preview(pipeline, inspected.types):
        lines.append(types)
    if columns_of_table(pipeline, inspected.columns) is None:
        lines.append(
            "The columns that the checks name are not compared with the tables here, because the columns of the tables "
            "are not known before the write. The run compares them after it."
        )
    if pipeline.schedule:
        lines.append(f"Its schedule, which `deploy` applies: {describe_schedule(pipeline.schedule)}.")
    return lines
