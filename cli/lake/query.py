"""The command `query`: query tables of main or of a branch."""

import csv
import json
import sys
from typing import Annotated

import typer

from cli.context import CommandContext, no_preparation, run_command
from cli.layout import print_rows
from cli.options import AsJson
from runtime.lake.query_tables import query_tables, rows_by_column
from sluice.errors import InvalidPipeline


def query(
    sql: Annotated[str, typer.Argument(help="A query in DuckDB's SQL: SELECT * FROM shop.orders LIMIT 10.")],
    ref: Annotated[
        str, typer.Option("--ref", help="A branch, or the run whose branch it is.", show_default="main")
    ] = "",
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_json: AsJson = False,
) -> None:
    """Query tables of main, or of a branch, by SQL. It changes nothing. This needs a worker."""

    async def command(context: CommandContext, _: None) -> int:
        settings = context.settings
        main = settings.catalog.sluice_main
        answer = await query_tables(context.client, settings.installation, sql, ref, main)
        if as_json:
            print(json.dumps({"rows": rows_by_column(answer)}))
        elif as_csv:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerows([answer.columns, *(map(_csv_value, row) for row in answer.rows)])
        elif answer.rows:
            rows = [["null" if value is None else _text(value) for value in row] for row in answer.rows]
            print_rows(context.console, answer.columns, rows)
        else:
            context.console.print("No rows.")
        return 0

    def prepare() -> None:
        if as_csv and as_json:
            raise InvalidPipeline("--csv and --json are two forms of one answer: give one of them")
        return no_preparation()

    run_command(command, as_json, prepare, read_only=True)


def _csv_value(value: object) -> str:
    return "" if value is None else _text(value)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list | bool) else str(value)
