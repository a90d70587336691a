"""The command `query`: query tables of main or of a branch."""

import csv
import json
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from cli.context import CommandContext, no_preparation, run_command
from cli.layout import print_rows
from cli.options import AsJson
from runtime.run.find_run import find_run
from runtime.short_workflow import query_lake
from sluice.contracts.lake_queries import QueryRows, QueryTablesInput
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
        request = QueryTablesInput(sql=sql, ref=await _run_id(context, ref))
        answer = await query_lake(context.client, context.settings.installation, request, QueryRows)
        if as_json:
            _refuse_equal_names(answer.columns)
            print(json.dumps({"rows": [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]}))
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

    run_command(command, as_json, prepare)


async def _run_id(context: CommandContext, ref: str) -> str:
    """Return the run id of a named run, or the name itself if Temporal does not know such a run."""
    if "/" in ref or ref in ("", context.settings.catalog.sluice_main):
        return ref
    try:
        run = await find_run(context.client, ref)
    except InvalidPipeline:
        return ref
    return run.handle.run_id or ref


def _refuse_equal_names(columns: Sequence[str]) -> None:
    """Check that one object can contain every column.

    Raises:
        InvalidPipeline: two columns have the same name.
    """
    repeated = sorted({name for name in columns if list(columns).count(name) > 1})
    if repeated:
        raise InvalidPipeline(f"several columns are called {repeated[0]!r}: rename them with AS")


def _csv_value(value: object) -> str:
    return "" if value is None else _text(value)


def _text(value: object) -> str:
    return json.dumps(value) if isinstance(value, dict | list | bool) else str(value)
