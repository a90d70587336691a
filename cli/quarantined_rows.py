"""What `quarantine list` and `quarantine show` print of rows in quarantine tables."""

from collections.abc import Sequence

from rich.text import Text

from cli.context import CommandContext
from cli.layout import Column, print_line, print_rows
from cli.program import program
from cli.report import print_detail
from runtime.quarantined_rows import QuarantinedRows, ShownRows
from sluice.audit.bad_rows import AT, CHECKS, RUN, quarantine_table
from sluice.sizes import format_count
from sluice.times import format_time


def print_listed_rows(context: CommandContext, listed: Sequence[QuarantinedRows]) -> None:
    """Print the rows of quarantine tables by table and run."""
    columns = ("table", "run", "quarantined", Column("bad rows", "right"))
    rows = [(each.table, each.run_id, format_time(each.at), f"{each.rows:,}") for each in listed]
    print_rows(context.console, columns, rows, title="bad rows in quarantine tables")


def print_shown_rows(context: CommandContext, shown: ShownRows) -> None:
    """Print how many rows break which check, some of the rows, and how to move them back."""
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
        rows.append([_text(name, values[name]) for name in names])
    print_rows(context.console, names, rows, title=f"{len(rows)} of {counted}", dim=True)
    selected = f" --run {shown.run_id}" if shown.run_id else ""
    requeue = f"{program()} requeue FILE --table {shown.table}{selected} --set COLUMN=SQL"
    print_detail(context.console, "to requeue", requeue)


def _text(name: str, value: object) -> str:
    if value is None:
        return "null"
    return ", ".join(map(str, value)) if name == CHECKS and isinstance(value, list) else str(value)
