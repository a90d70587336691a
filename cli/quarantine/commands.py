"""The commands of `quarantine`, about quarantined branches."""

import getpass
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from cli.confirming import Yes, confirm
from cli.context import CommandContext, no_preparation, run_command
from cli.installation.keys import refuse
from cli.layout import print_command, print_detail, print_entries, print_line, print_rows
from cli.lazy_commands import show_help
from cli.options import AsJson, By
from cli.pipeline.values import Partition, ScheduledFor
from cli.program import program
from cli.quarantine.quarantined_rows import print_listed_rows, show_rows
from cli.run.follow import start_and_follow
from cli.run.report import print_bad_rows
from cli.run.verdicts import print_verdict
from runtime.pipeline.pipeline_input import load_pipeline
from runtime.pipeline.placeholder_values import placeholder_values
from runtime.quarantine.managing import end_of_retention, find_quarantine, manage_quarantine
from runtime.quarantine.quarantined_rows import list_quarantined_rows
from runtime.quarantine.releasing import plan_release, repair_statements
from runtime.short_workflow import query_lake
from sluice.contracts.lake_queries import PlanReleaseInput
from sluice.contracts.quarantine import QuarantineAction
from sluice.contracts.quarantine_queries import (
    DescribeQuarantineInput,
    DescribeQuarantineResult,
    ListQuarantineInput,
    ListQuarantineResult,
    QuarantinedTable,
    QuarantineSummary,
)
from sluice.environment_files import read_environment
from sluice.errors import InvalidPipeline, SluiceError
from sluice.pipeline.model import Pipeline
from sluice.presentation.cells import shown_value
from sluice.presentation.changes import describe_change
from sluice.presentation.next_steps import quarantine_commands
from sluice.sizes import format_count, format_size
from sluice.times import format_expiry, format_time

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    help="Inspect branches that were kept out of main; repair, release or delete them. These commands need a worker.",
)
app.callback(invoke_without_command=True)(show_help)

_BAD_ROWS = 10
Shown = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id, a branch, or a pipeline for its newest quarantine.")
]
Quarantined = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id, a branch, or a pipeline that has one quarantine.")
]
Rows = Annotated[
    int | None,
    typer.Option(
        "--rows",
        help=f"Maximum number of bad rows of each check ({_BAD_ROWS}), and of added rows of each table (none, or "
        f"{_BAD_ROWS} with --json).",
        min=0,
        show_default=False,
    ),
]
Again = Annotated[bool, typer.Option("--again", help="Publish it although its files were published meanwhile.")]
Detach = Annotated[bool, typer.Option("--detach", help="Start the run, and do not follow it.")]
PipelineFile = Annotated[
    Path | None, typer.Option("--pipeline", help="Audit by the checks of this file, not by those of the run.")
]


@app.command("list")
def list_quarantined(as_json: AsJson = False) -> None:
    """List what is quarantined: branches of runs, and bad rows in quarantine tables."""

    async def command(context: CommandContext, _: None) -> int:
        query = ListQuarantineInput(sizes=not as_json)
        entries = (
            await query_lake(context.client, context.settings.installation, query, ListQuarantineResult)
        ).quarantined
        set_apart, problems = await list_quarantined_rows(context.client, context.settings.installation)
        for problem in problems:
            print(f"hint: {problem}", file=sys.stderr)
        if as_json:
            listed = [entry.summary.model_dump() for entry in entries]
            print(json.dumps({"quarantined": listed, "rows": [asdict(each) for each in set_apart]}))
            return 0
        rows = []
        for entry in entries:
            each = entry.summary
            created, kept_until = format_time(each.created), format_expiry(each.expires)
            rows.append((each.run_id, each.pipeline, created, kept_until, format_size(entry.bytes or 0), each.reason))
        if rows:
            names = ("run", "pipeline", "created", "kept until", "size", "reason")
            print_entries(context.console, names, rows, in_first_line=4)
        if set_apart:
            print_listed_rows(context, set_apart)
        if not rows and not set_apart:
            context.console.print("Nothing is quarantined.")
        return 0

    run_command(command, as_json, no_preparation, read_only=True)


@app.command()
def show(run: Shown, rows: Rows = None, as_json: AsJson = False) -> None:
    """Show why rows were kept out: each verdict with its bad rows, what changes, and the rows of quarantine tables."""

    async def command(context: CommandContext, _: None) -> int:
        bad_rows = _BAD_ROWS if rows is None else rows
        added_rows = bad_rows if as_json else rows or 0
        query = DescribeQuarantineInput(run=run, rows=bad_rows, added_rows=added_rows)
        try:
            described = await query_lake(context.client, context.settings.installation, query, DescribeQuarantineResult)
        except InvalidPipeline:
            with suppress(SluiceError):  # a branch that does not exist may have a name that no query can contain
                if await show_rows(context, run, bad_rows):
                    return 0
            raise
        summary = described.summary.model_dump()
        if as_json:
            print(json.dumps({**summary, **described.model_dump(mode="json", include={"tables", "checks"})}))
            return 0
        _print_described(context, described, bad_rows)
        return 0

    run_command(command, as_json, no_preparation, read_only=True)


def _print_described(context: CommandContext, described: DescribeQuarantineResult, rows: int) -> None:
    """Print the verdicts and changes of a quarantined branch, then the values that a person may want to copy."""
    summary = described.summary
    heading = Text.assemble((summary.cause or "quarantined", "bold red"), "  ")
    print_line(context.console, heading, summary.reason)
    for check in sorted(described.checks, key=lambda check: not check.blocks):
        print_verdict(context.console, check)
        print_bad_rows(context.console, check, rows)
    for name, table in described.tables.items():
        _print_table(context, name, table)
    details = summary.model_dump(exclude={"tables", "reason", "cause", "quarantined_hash", "verified"})
    if not summary.verified:
        details["verified"] = "no: the run ended before the write was verified, so it cannot be released or repaired"
    for name, value in details.items():
        if value != "":
            print_detail(context.console, name.replace("_", " "), _shown(name, value))
    may_release = summary.verified and not summary.problem and not summary.target
    commands = quarantine_commands(summary.run_id or summary.branch, program(), may_release=may_release)
    for purpose, step in commands.items():
        print_command(context.console, purpose, step)


def _shown(name: str, value: object) -> str:
    """Return a detail of a description in readable form."""
    if name == "expires":
        return format_expiry(str(value))
    return format_time(str(value)) if name == "created" else str(value)


def _print_table(context: CommandContext, name: str, table: QuarantinedTable) -> None:
    change = table.change
    counts = f"{change.operation}: {describe_change(change)}" if change else "dropped"
    print_line(context.console, Text(f"{name}  ", style="bold"), f"{counts}, {format_size(table.bytes)}")
    for column in table.columns:
        print_line(context.console, Text("    column "), column)
    if table.rows:
        columns = list(dict.fromkeys(column for row in table.rows for column in row))
        rows = [[shown_value(row.get(column)) for column in columns] for row in table.rows]
        print_rows(context.console, columns, rows, title=f"{format_count(len(rows), 'added row')}", dim=True)


def _print_taken(context: CommandContext, taken: QuarantineSummary) -> None:
    """Print the quarantine that a command is about to publish, delete or keep."""
    created, until = format_time(taken.created), format_expiry(taken.expires)
    tables = [
        f"{name}: {'rows not known' if rows is None else f'{rows:+,} rows'}" for name, rows in taken.tables.items()
    ]
    details = {"branch": taken.branch, "run": taken.run_id, "pipeline": taken.pipeline, "created": created}
    details |= {"kept until": until, "reason": taken.reason, "tables": ", ".join(tables) or "not known"}
    for name, value in details.items():
        print_detail(context.console, name, value)


@app.command()
def discard(run: Quarantined, by: By = None, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a quarantined branch for good. The command shows the branch and asks first."""
    _manage(run, "discard", by, as_json, yes=yes)


@app.command()
def keep(
    run: Quarantined,
    how_long: Annotated[str, typer.Option("--for", help="How long from now: 30d, 12h.")],
    by: By = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Keep a quarantined branch for a longer or shorter time. The command shows the branch and asks first."""
    try:
        until = end_of_retention(how_long)
    except ValueError as error:
        refuse(str(error))
    _manage(run, "keep", by, as_json, until, yes=yes)


def _manage(run: str, action: QuarantineAction, by: str | None, as_json: bool, until: str = "", *, yes: bool) -> None:
    async def command(context: CommandContext, _: None) -> int:
        installation = context.settings.installation
        quarantine = await find_quarantine(context.client, installation, run)
        branch = quarantine.branch
        _print_taken(context, quarantine)
        asked = "Delete it for good?" if action == "discard" else f"Keep it until {format_time(until)}?"
        confirm(context, asked, yes=yes)
        context.interruption.message = "Interrupted; a worker may do it anyway: `quarantine list` shows the state."
        person = by or getpass.getuser()
        left = await manage_quarantine(context.client, installation, quarantine, action, person, until)
        text = f"Deleted {branch}." if action == "discard" else f"Kept {branch} until {format_time(until)}."
        context.print_result({"action": action, "branch": branch, "left": left, "until": until}, text)
        return 0

    run_command(command, as_json, no_preparation)


@app.command()
def release(
    run: Quarantined,
    pipeline: PipelineFile = None,
    partition: Partition = "",
    scheduled_for: ScheduledFor = "",
    again: Again = False,
    detach: Detach = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Audit a quarantined branch again, on main as it is now, and publish it if it passes. This starts a new run."""
    given = partial(_load, pipeline, partition, scheduled_for)
    _release(run, given, [], again=again, detach=detach, yes=yes, as_json=as_json)


@app.command()
def repair(
    run: Quarantined,
    sql: Annotated[
        list[str] | None, typer.Option("--sql", help="A statement that repairs the rows; several run in this order.")
    ] = None,
    pipeline: PipelineFile = None,
    partition: Partition = "",
    scheduled_for: ScheduledFor = "",
    again: Again = False,
    detach: Detach = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Repair quarantined rows by SQL, audit them again, and publish them if they pass. This starts a new run."""
    if not sql:
        refuse(
            f"give the repair by --sql, as in: quarantine repair {run} "
            '--sql "UPDATE namespace.table SET column = 0 WHERE column < 0". '
            "Rows in a table's __quarantine table are repaired by `requeue`"
        )
    try:
        statements = repair_statements(sql)
    except InvalidPipeline as error:
        refuse(str(error))
    given = partial(_load, pipeline, partition, scheduled_for)
    _release(run, given, statements, again=again, detach=detach, yes=yes, as_json=as_json)


def _load(file: Path | None, partition: str, scheduled_for: str) -> Pipeline | None:
    """Return the pipeline whose checks replace those of a quarantined run; None without a file."""
    values = placeholder_values(file, scheduled_for, partition)
    return load_pipeline(file, read_environment(), Path.cwd(), values) if file else None


def _release(
    run: str,
    given: Callable[[], Pipeline | None],
    statements: list[str],
    *,
    again: bool,
    detach: bool,
    yes: bool,
    as_json: bool,
) -> None:
    async def command(context: CommandContext, pipeline: Pipeline | None) -> int:
        query = PlanReleaseInput(run=run, statements=statements, again=again)
        planned = await plan_release(context.client, context.settings.installation, query, pipeline)
        _print_taken(context, planned.quarantine)
        for statement in statements:
            print_detail(context.console, "repair", statement)
        confirm(context, "Audit it again, and publish it if it passes?", yes=yes)
        return await start_and_follow(
            context, planned.pipeline, planned.run_input, planned.options, detach=detach, tables=planned.plan.tables
        )

    run_command(command, as_json, given)
