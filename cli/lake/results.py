"""The command `results`: query the results of all ended runs."""

import json
from typing import Annotated

import typer

from cli.context import CommandContext, no_preparation, run_command
from cli.layout import print_rows
from cli.options import AsJson
from runtime.short_workflow import query_lake
from sluice.contracts.lake_queries import QueryAuditResultsInput, QueryRows
from sluice.times import format_time

_LATEST = (
    "SELECT ended_at, pipeline, outcome, table_name, check_name, check_label, columns, verdict, waived_by, observed, "
    "answered_by FROM results ORDER BY ended_at DESC, table_name, check_name LIMIT 50"
)
_TIMES = ("ended_at", "waived_until")
"""Columns of times. Other values that look like a time are values of checks, and are printed as they are."""


def results(
    sql: Annotated[str, typer.Argument(help="A query over the table `results`, in DuckDB's SQL.")] = _LATEST,
    as_json: AsJson = False,
) -> None:
    """Query the verdicts of every run that ended, by SQL. This needs a worker."""

    async def command(context: CommandContext, _: None) -> int:
        query = QueryAuditResultsInput(sql=sql)
        answer = await query_lake(context.client, context.settings.installation, query, QueryRows)
        if as_json:
            print(json.dumps({"rows": [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]}))
            return 0
        if answer.rows:
            print_rows(context.console, answer.columns, [list(map(_cell, answer.columns, row)) for row in answer.rows])
        else:
            context.console.print("No rows.")
        return 0

    run_command(command, as_json, no_preparation, read_only=True)


def _cell(column: str, value: object) -> str:
    """Return a value in readable form: the end of a run to the minute, a list without its brackets."""
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(_cell(column, each) for each in value)
    return format_time(value) if column in _TIMES and isinstance(value, str) else str(value)
