"""The command that queries the results of all runs that ended."""

import json
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from cli.context import CommandContext, no_preparation, run_command
from runtime.short_workflow import query_lake
from sluice.contracts.lake_queries import QueryAuditResultsInput, QueryAuditResultsResult

_LATEST = (
    "SELECT ended_at, pipeline, outcome, table_name, check_name, columns, verdict, observed, answered_by "
    "FROM results ORDER BY ended_at DESC, table_name, check_name LIMIT 50"
)
_WIDTH = 160

app = typer.Typer(add_completion=False)


@app.command()
def results(
    sql: Annotated[str, typer.Argument(help="A query over the table `results`, in DuckDB's SQL.")] = _LATEST,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Query the verdicts of every run that ended, by SQL. This needs a worker."""

    async def command(context: CommandContext, _: None) -> int:
        query = QueryAuditResultsInput(sql=sql)
        answer = await query_lake(context.client, context.settings, query, QueryAuditResultsResult)
        if as_json:
            print(json.dumps({"rows": [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]}))
            return 0
        table = Table(*map(escape, answer.columns), box=None, header_style="bold")
        for row in answer.rows:
            table.add_row(*(escape(str(value)) for value in row))
        if not context.console.is_terminal:
            context.console.width = _WIDTH
        context.console.print(table)
        return 0

    run_command(command, as_json, no_preparation)
