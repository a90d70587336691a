"""Output of `quarantine list` and `quarantine show` about rows of quarantine tables."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict

from rich.text import Text

from cli.context import CommandContext
from cli.layout import Column, print_command, print_line, print_rows
from cli.program import program
from runtime.quarantine.quarantined_rows import QuarantinedRows, ShownRows, show_quarantined_rows
from runtime.run.find_run import find_run
from sluice.errors import InvalidPipeline
from sluice.presentation.cells import shown_value
from sluice.publishing.quarantine_tables import AT, RUN, quarantine_table
from sluice.sizes import format_count
from sluice.times import format_time


def print_listed_rows(context: CommandContext, listed: Sequence[QuarantinedRows]) -> None:
    """Print the number of rows in quarantine tables, by table and run."""
    columns = ("table", "run", "quarantined", Column("bad rows", "right"))
    rows = [(each.table, each.run_id, format_time(each.at), f"{each.rows:,}") for each in listed]
    print_rows(context.console, columns, rows, title="bad rows in quarantine tables")


async def show_rows(context: CommandContext, named: str, limit: int) -> bool:
    """Show the rows of a run, or of a table, in quarantine tables. Return False if there are none."""
    run_id = named
    if "." not in named:
        with suppress(InvalidPipeline):
            run_id = (await find_run(context.client, named)).handle.run_id or named
    shown = await show_quarantined_rows(context.client, context.settings.installation, run_id, limit)
    if context.as_json:
        tables = [{**asdict(each), "sample": each.sample.model_dump(mode="json")} for each in shown]
        if tables:
            print(json.dumps({"rows": tables}))
        return bool(tables)
    for each in shown:
        _print_shown_rows(context, each)
    return bool(shown)


def _print_shown_rows(context: CommandContext, shown: ShownRows) -> None:
    """Print the number of rows that break each check, some of the rows, and the command that requeues them."""
    counted = format_count(shown.rows, "bad row")
    of_run = f" of run {shown.run_id}" if shown.run_id else ""
    print_line(
        context.console, Text(f"{shown.table}  ", style="bold"), f"{counted} in {quarantine_table(shown.table)}{of_run}"
    )
    print_rows(context.console, ("check", Column("rows", "right")), [(t, f"{n:,}") for t, n in shown.checks.items()])
    hidden = {AT, *([RUN] if shown.run_id else ())}
    names = [name for name in shown.sample.columns if name not in hidden]
    rows = []
    for row in shown.sample.rows:
        values = dict(zip(shown.sample.columns, row, strict=True))
        rows.append([shown_value(values[name]) for name in names])
    print_rows(context.console, names, rows, title=f"{len(rows)} of {counted}", dim=True)
    selected = f" --run {shown.run_id}" if shown.run_id else ""
    requeue = f"{program()} requeue FILE --table {shown.table}{selected} --set COLUMN=SQL"
    print_command(context.console, "to requeue", requeue)
