"""The command `diff`: show which rows differ between two states of the tables."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from cli.context import CommandContext, no_preparation, run_command
from cli.layout import Column, print_line, print_rows
from cli.options import AsJson
from runtime.run.diffed_run import NamedState, find_state, keys_of_runs
from runtime.short_workflow import query_lake
from sluice.contracts.table_diffs import MAX_ROWS, DiffTablesInput, DiffTablesResult, RowDifferences, TableDiffResult
from sluice.presentation.cells import shown_value
from sluice.presentation.diffs import (
    changed_cells,
    describe_counts,
    describe_schema_change,
    describe_states,
    main_moved,
    signed,
)
from sluice.sizes import format_count

_STYLES = {"created": "green", "dropped": "red", "changed": "cyan", "not compared": "yellow"}


def diff(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="A run, a branch, a quarantine, or a commit on main.")],
    other: Annotated[
        str, typer.Argument(metavar="OTHER", help="A second run or commit on main, to compare main after each.")
    ] = "",
    table: Annotated[str, typer.Option("--table", help="The only table to compare.")] = "",
    key: Annotated[
        str, typer.Option("--key", help="Columns that identify a row, as `id` or `day,shop`.", show_default="known key")
    ] = "",
    rows: Annotated[
        int, typer.Option("--rows", help="Maximum number of rows of each kind to show per table.", min=0, max=MAX_ROWS)
    ] = 10,
    as_json: AsJson = False,
) -> None:
    """Show which rows differ: of a run and main before it, or of two publications. This needs a worker."""

    async def command(context: CommandContext, _: None) -> int:
        first = await find_state(context.client, what)
        second = await find_state(context.client, other) if other else NamedState("")
        question = DiffTablesInput(
            what=first.name,
            head=first.head,
            other=second.name,
            table=table,
            key=[name.strip() for name in key.split(",") if name.strip()],
            known_keys={**first.keys, **second.keys},
            rows=rows,
        )
        result = await _ask(context, question)
        if as_json:
            print(result.model_dump_json())
        else:
            print_diff(context.console, result)
        return 0

    run_command(command, as_json, no_preparation, read_only=True)


async def _ask(context: CommandContext, question: DiffTablesInput) -> DiffTablesResult:
    """Return the answer of a worker. If no key is known, ask again with those of the runs that made the two states."""
    result = await query_lake(context.client, context.settings.installation, question, DiffTablesResult)
    if question.key or question.known_keys or not any(_lacks_key(table) for table in result.tables):
        return result
    keys = await keys_of_runs(context.client, filter(None, (result.before.run_id, result.after.run_id)))
    if not keys:
        return result
    again = question.model_copy(update={"known_keys": keys})
    return await query_lake(context.client, context.settings.installation, again, DiffTablesResult)


def _lacks_key(table: TableDiffResult) -> bool:
    return table.key.source == "none" and table.rows is not None and table.rows.added > 0 and table.rows.removed > 0


def print_diff(console: Console, result: DiffTablesResult) -> None:
    """Print a diff: the two states, the numbers of all tables, then the details of each table."""
    print_line(console, Text(), describe_states(result))
    if moved := main_moved(result):
        print_line(console, Text("hint  ", style="yellow"), moved)
    if not result.tables:
        console.print("No table differs.")
        return
    if len(result.tables) > 1:
        _print_overview(console, result.tables)
    for table in result.tables:
        console.print()
        _print_table(console, table)
    if result.left_out:
        listed = ", ".join(result.left_out)
        print_line(console, Text("not compared  ", style="yellow"), f"{listed}: choose one with --table")


def _print_overview(console: Console, tables: Sequence[TableDiffResult]) -> None:
    numbers = [Column(name, "right") for name in ("added", "removed", "changed")]
    rows = [[each.table, each.state, *(_counts(each.rows) if each.rows else "???")] for each in tables]
    print_rows(console, ["table", "state", *numbers], rows)


def _counts(rows: RowDifferences) -> list[str]:
    return [signed("added", rows.added), signed("removed", rows.removed), signed("changed", rows.changed)]


def _print_table(console: Console, table: TableDiffResult) -> None:
    style = f"bold {_STYLES.get(table.state, '')}".strip()
    print_line(console, Text.assemble((table.table, style), "  "), describe_counts(table))
    if table.problem:
        print_line(console, Text("    not compared  ", style="yellow"), table.problem)
    for note in table.notes:
        print_line(console, Text("    hint  ", style="yellow"), note)
    for change in table.schema_changes:
        print_line(console, Text("    column "), describe_schema_change(change))
    _print_more(console, table.more_schema_changes, "change", "of columns")
    if table.rows:
        _print_numbers(console, table.rows)
        _print_samples(console, table, table.rows)


def _print_numbers(console: Console, rows: RowDifferences) -> None:
    """Print the columns that change most, and the partitions with most differing rows."""
    if rows.columns:
        cells = [[each.column, f"{each.cells:,}"] for each in rows.columns]
        print_rows(console, ["column", Column("changed cells", "right")], cells, dim=True)
        _print_more(console, rows.more_columns, "column")
    if rows.partitions:
        numbers = [Column(name, "right") for name in ("added", "removed", "changed")]
        counts = [
            [each.partition or "no partition", signed("added", each.added), signed("removed", each.removed),
             signed("changed", each.changed)]
            for each in rows.partitions
        ]  # fmt: skip
        print_rows(console, ["partition", *numbers], counts, dim=True)
        _print_more(console, rows.more_partitions, "partition")


def _print_samples(console: Console, table: TableDiffResult, rows: RowDifferences) -> None:
    """Print some of the changed, added and removed rows. Each changed row begins with its key."""
    lines = []
    for row in rows.changed_rows:
        key = [shown_value(value) for value in row.key.values()]
        for name, values in changed_cells(row):
            lines.append([*key, name, values])
            key = [""] * len(key)
    if lines:
        title = _title("changed", len(rows.changed_rows), rows.changed)
        print_rows(console, [*table.key.columns, "column", "before → after"], lines, title=title, dim=True)
    for kind, listed, count in (("added", rows.added_rows, rows.added), ("removed", rows.removed_rows, rows.removed)):
        if listed:
            _print_rows(console, listed, _title(kind, len(listed), count))


def _print_rows(console: Console, rows: Sequence[dict[str, Any]], title: str) -> None:
    columns = list(rows[0])
    print_rows(console, columns, [[shown_value(row[name]) for name in columns] for row in rows], title=title, dim=True)


def _title(kind: str, shown: int, count: int) -> str:
    return f"{shown:,} of {format_count(count, f'{kind} row')}"


def _print_more(console: Console, count: int, thing: str, of: str = "") -> None:
    if count:
        print_line(console, Text("    "), f"and {count:,} more {thing}{'s' * (count != 1)} {of}".rstrip())
