"""The command that checks a pipeline file and its input, and runs nothing."""

import json
from pathlib import Path
from typing import Annotated

import typer

from cli.context import check_locally
from runtime.pipeline_input import InspectedInput, inspect_input, load_pipeline
from sluice.pipeline.input_columns import columns_of_table
from sluice.pipeline.model import Pipeline
from sluice.settings import read_environment
from sluice.sizes import format_count, format_size

_SHOWN = 20
"""So many columns are named."""


def check_pipeline(
    pipeline: Annotated[
        Path | None,
        typer.Argument(help="A pipeline file; without one, the pipeline of the environment (see .env.example)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check a pipeline file, its files and their columns. This needs no server and runs nothing."""

    def check() -> None:
        loaded = load_pipeline(pipeline, read_environment(), Path.cwd())
        inspected = inspect_input(loaded, pipeline)
        print(json.dumps(_fields(loaded, inspected)) if as_json else _sentences(loaded, inspected))

    check_locally(check, as_json)


def _fields(pipeline: Pipeline, inspected: InspectedInput) -> dict[str, object]:
    return {
        "pipeline": pipeline.name,
        "valid": True,
        "tables": {name: len(table.checks) for name, table in pipeline.tables.items()},
        "files": inspected.run_input.files,
        "bytes": inspected.run_input.bytes,
        "columns": inspected.columns,
        "hints": inspected.hints,
    }


def _sentences(pipeline: Pipeline, inspected: InspectedInput) -> str:
    checks = sum(len(table.checks) for table in pipeline.tables.values())
    lines = [f"{pipeline.name} is valid: {format_count(checks, 'check')} of {', '.join(pipeline.tables)}."]
    loaded = inspected.run_input
    if loaded.files:
        lines.append(f"Its source has {format_count(loaded.files, 'file')}, {format_size(loaded.bytes)}.")
    if inspected.columns is not None:
        more = f" and {len(inspected.columns) - _SHOWN} more" if len(inspected.columns) > _SHOWN else ""
        lines.append(f"Columns: {', '.join(inspected.columns[:_SHOWN])}{more}.")
    if columns_of_table(pipeline, inspected.columns) is None:
        lines.append("Columns of checks are held against the tables when the run writes: they are not known before.")
    return "\n".join([*lines, *(f"hint: {hint}" for hint in inspected.hints)])
