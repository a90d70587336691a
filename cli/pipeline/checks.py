"""The command `checks`: list every check, its parameters, and what answers it."""

import json
from typing import Annotated

import typer

from cli.exit_codes import WRONG_USE, print_error
from cli.layout import make_console, print_rows
from cli.options import AsJson
from sluice.errors import InvalidPipeline
from sluice.identifiers import suggestion
from sluice.presentation.known_checks import known_checks


def list_checks(
    name: Annotated[str, typer.Argument(metavar="[CHECK]", help="Only this check.")] = "",
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of a pipeline file, for editors.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List every check, or one: its parameters, and how it can be answered."""
    checks = known_checks()
    by_name = {each: entry for entry in checks for each in (entry.name, *entry.aliases)}
    if name and name not in by_name:
        code = print_error(
            InvalidPipeline(f"there is no check {name!r}{suggestion(name, by_name)}"), as_json, WRONG_USE
        )
        raise typer.Exit(code)
    listed = [by_name[name]] if name else checks
    if schema:
        from sluice.presentation.pipeline_schema import json_schema  # noqa: PLC0415  # needs the model of pipelines

        print(json.dumps(json_schema(), indent=1))
        return
    if as_json:
        print(json.dumps({"checks": [vars(entry) for entry in listed]}))
        return
    rows = [
        (
            entry.name,
            entry.meaning,
            ", ".join([*entry.parameters, *(["row parameters"] if entry.row_check else [])]),
            entry.proof,
        )
        for entry in listed
    ]
    console = make_console()
    columns = ("check", "what must be true", "parameters (? may be left out)", "answered from metadata when")
    print_rows(console, columns, rows)
    console.print(
        "\nRow parameters: where, mostly or max_failures or fail_if, warn_if. Every check takes severity and scope.\n"
        "A check that metadata cannot answer needs a scan of the rows: by DuckDB, or by Spark where DuckDB "
        "could give another answer.",
        highlight=False,
    )
