"""The command that queries the results of all runs that ended."""

import json
import sys
from typing import Annotated, NoReturn

import duckdb
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cli.context import WRONG_USE
from lakehouse.audit_results_table import AuditResultsTable
from lakehouse.iceberg.file_io import file_io_properties
from lakehouse.open_catalog import open_catalog
from sluice.errors import ServiceUnavailable, SluiceError
from sluice.settings import read_environment, read_settings
from sluice.sql.values import plain

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
    """Query the verdicts of every run that ended, by SQL."""
    try:
        settings = read_settings(read_environment())
        catalog = open_catalog(settings)
        ledger = AuditResultsTable(catalog, settings.lake, file_io_properties(settings)).read()
        if ledger is None:
            _leave("no run has ended yet", WRONG_USE)
        with duckdb.connect(":memory:", config={"autoinstall_known_extensions": False}) as connection:
            connection.register("results", ledger.scan().to_arrow())
            found = connection.sql(sql)
            names, rows = found.columns, found.to_arrow_table().to_pylist()
    except ServiceUnavailable as error:
        _leave(str(error), 7)
    except SluiceError as error:
        _leave(str(error), WRONG_USE)
    except duckdb.Error as error:
        _leave(str(error).split("\n\n")[0], WRONG_USE)
    if as_json:
        print(json.dumps({"rows": [{name: _shown(value) for name, value in row.items()} for row in rows]}))
        return
    table = Table(*names, box=None, header_style="bold")
    for row in rows:
        table.add_row(*(escape(str(_shown(row[name]))) for name in names))
    console = Console()
    if not console.is_terminal:
        console.width = _WIDTH
    console.print(table)


def _shown(value: object) -> object:
    return [plain(each) for each in value] if isinstance(value, list) else plain(value)


def _leave(why: str, code: int) -> NoReturn:
    print(f"sluice: {why}", file=sys.stderr)
    raise typer.Exit(code)
