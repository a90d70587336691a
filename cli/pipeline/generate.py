"""The command `generate`: write a file of rows that checks accept, with planted faults."""

import asyncio
import json
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer

from cli.layout import make_console, print_rows
from cli.local import check_locally
from cli.options import AsJson
from cli.pipeline.values import Partition, ScheduledFor
from generation.labels import check_labels, parse_faults
from generation.requests import Generated, Request, checks_of
from runtime.pipeline.generated_files import (
    LakeAnswers,
    Options,
    ask_lake,
    generate_file,
    needs_lake,
    prepare_request,
    source_of,
    source_of_environment,
)
from runtime.pipeline.pipeline_input import load_pipeline
from runtime.pipeline.placeholder_values import placeholder_values
from sluice.environment_files import read_environment
from sluice.sizes import format_count

_SHOWN = 5
"""Maximum number of rows shown."""


def generate(
    pipeline: Annotated[
        Path | None, typer.Argument(help="A pipeline file; without one, the columns are my_col_0 to my_col_2.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option("-n", "--rows", min=1, help="Number of rows.", show_default="near 1000")
    ] = None,
    no_null: Annotated[bool, typer.Option("--no-null", help="Make no nulls in any column.")] = False,
    fault: Annotated[
        list[str] | None,
        typer.Option("--fault", metavar="CHECK[=SHARE]", help="Break a check in this share of the rows; repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed makes the same rows.")] = 7,
    scheduled_for: ScheduledFor = "",
    partition: Partition = "",
    to: Annotated[str, typer.Option("--to", help="The folder to write into.", show_default="the current one")] = ".",
    verbose: Annotated[bool, typer.Option("--verbose", help="Show the columns, the checks and a few rows.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a file of rows that a pipeline's checks accept. Nothing is loaded."""

    def write() -> None:
        environment = read_environment()
        values = placeholder_values(pipeline, scheduled_for, partition)
        loaded = load_pipeline(pipeline, environment, Path.cwd(), values) if pipeline else None
        parse_faults(fault or (), checks_of(loaded))
        answers = asyncio.run(ask_lake(loaded, environment)) if loaded and needs_lake(loaded) else LakeAnswers()
        options = Options(rows, seed, no_null, fault or (), values)
        request = prepare_request(loaded, answers, options, datetime.now(timezone.utc))
        source = source_of(loaded) if loaded else source_of_environment(environment)
        path, generated, count = generate_file(loaded, request, options, to, source)
        for note in (*answers.problems, *generated.notes):
            print(f"hint: {note}", file=sys.stderr)
        if as_json:
            print(json.dumps({"file": str(path), "rows": count, "seed": seed, "notes": generated.notes}))
            return
        if verbose:
            _describe(request, generated)
        print(f"Wrote {path}: {format_count(count, 'row')}, columns by {request.shape.origin}.")

    check_locally(write, as_json)


def _describe(request: Request, generated: Generated) -> None:
    console = make_console()
    kinds = [[each.name, each.type, "required" if each.required else ""] for each in request.shape.columns]
    print_rows(console, ["column", "type", ""], kinds)
    if request.checks:
        console.print(f"Checks: {', '.join(check_labels(request.checks))}.", highlight=False)
    names = [each.name for each in request.shape.columns]
    shown = [["null" if row[name] is None else str(row[name]) for name in names] for row in generated.rows[:_SHOWN]]
    print_rows(console, names, shown)
