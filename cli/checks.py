"""The commands about checks: listing them, and importing them from dbt or Great Expectations."""

import io
import json
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from ruamel.yaml import YAML

from cli.context import WRONG_USE
from cli.import_checks import import_checks
from sluice.errors import InvalidPipeline
from sluice.presentation.check_reference import entries, json_schema

_WIDTH = 160


class Scope(str, Enum):
    """Which rows imported checks are about."""

    table = "table"
    added = "added"


def list_checks(
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of a pipeline file, for editors.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List every check: its parameters, and how it can be answered."""
    if schema:
        print(json.dumps(json_schema(), indent=1))
        return
    if as_json:
        print(json.dumps({"checks": [vars(entry) for entry in entries()]}))
        return
    table = Table(box=None, header_style="bold")
    for name in ("check", "what must be true", "parameters (? may be left out)", "answered from metadata when"):
        table.add_column(name, overflow="fold")
    for entry in entries():
        parameters = [*entry.parameters, *(["row parameters"] if entry.row_check else [])]
        table.add_row(entry.name, escape(entry.meaning), ", ".join(parameters), entry.proof)
    console = Console()
    if not console.is_terminal:
        console.width = _WIDTH
    console.print(table)
    console.print(
        "\nRow parameters: where, mostly or max_failures or fail_if, warn_if. Every check takes severity and scope.\n"
        "What metadata cannot answer takes a scan of the rows, by DuckDB or, where its answers could differ, by Spark.",
        highlight=False,
    )


def import_file(
    file: Annotated[Path, typer.Argument(help="A dbt schema.yml, or a Great Expectations suite as JSON.")],
    namespace: Annotated[str, typer.Option(help="The namespace of the tables.")] = "main",
    table: Annotated[str | None, typer.Option(help="The table that a suite is about.")] = None,
    scope: Annotated[Scope, typer.Option(help="About the whole table, or what each run adds.")] = Scope.table,
) -> None:
    """Turn the tests of dbt or the expectations of Great Expectations into checks, as YAML; report the rest."""
    try:
        imported = import_checks(file, scope.value, namespace, table)
    except InvalidPipeline as error:
        print(f"sluice: {error}", file=sys.stderr)
        raise typer.Exit(WRONG_USE) from error
    text = io.StringIO()
    yaml = YAML()
    yaml.default_flow_style = None
    yaml.width = _WIDTH
    yaml.dump({"tables": {name: {"checks": checks} for name, checks in imported.checks.items()}}, text)
    print(text.getvalue(), end="")
    count = sum(map(len, imported.checks.values()))
    print(f"# {count} checks carried over, {len(imported.left)} not", file=sys.stderr)
    for line in imported.left:
        print(f"# not carried over: {line}", file=sys.stderr)
