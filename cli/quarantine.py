"""The commands about quarantined branches."""

import getpass
import json
import uuid
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table
from temporalio.client import WorkflowFailureError

from cli.context import CommandContext, no_preparation, run_command
from cli.follow import start_and_follow
from cli.keys import refuse
from cli.report import format_size, verdict_line
from lakehouse.iceberg.file_io import file_io_properties
from lakehouse.open_catalog import open_catalog
from lakehouse.quarantine import QuarantinedBranch, find_quarantined_branch, list_quarantined_branches, read_held_tables
from lakehouse.report_store import ReportStore
from runtime.find_run import read_request
from runtime.start_run import StartOptions, load_pipeline
from sluice.contracts.activity_inputs import Resume, RunRef
from sluice.contracts.quarantine import ManageQuarantineInput
from sluice.errors import InvalidPipeline
from sluice.pipeline.durations import seconds
from sluice.pipeline.model import Pipeline
from sluice.pipeline.write import Write
from sluice.settings import read_environment
from workflows.manage_quarantine import ManageQuarantine

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Look at what was kept out, repair it, release it, or let it go."
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output, and nothing else.")]
What = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, a branch, or a pipeline: its latest.")]
By = Annotated[str | None, typer.Option("--by", help="Who decides.", show_default="you")]
Detach = Annotated[bool, typer.Option("--detach", help="Start the run, and do not follow it.")]
PipelineFile = Annotated[
    Path | None, typer.Option("--pipeline", help="Audit by the checks of this file, not by those of the run.")
]


@app.command("list")
def list_quarantined(as_json: AsJson = False) -> None:
    """List what is quarantined."""

    async def command(context: CommandContext, _: None) -> int:
        catalog = open_catalog(context.settings)
        found = list_quarantined_branches(catalog)
        if as_json:
            print(json.dumps({"quarantined": [each.fields() for each in found]}))
            return 0
        table = Table(box=None, header_style="bold")
        for name in ("run", "pipeline", "kept until", "holds", "because"):
            table.add_column(name, overflow="fold")
        for each in found:
            holds = sum(part.bytes for part in read_held_tables(catalog, file_io_properties(context.settings), each))
            kept_until = f"{each.expires:%Y-%m-%d %H:%M}" if each.expires else ""
            cells = (each.run_id, each.pipeline, kept_until, format_size(holds), each.fields()["reason"])
            table.add_row(*map(escape, cells))
        context.console.print(table if found else "Nothing is quarantined.")
        return 0

    run_command(command, as_json, no_preparation)


@app.command()
def show(run: What, as_json: AsJson = False) -> None:
    """Show why something was kept out, and what it changes."""
    _show(run, as_json, rows=False)


@app.command()
def diff(run: What, as_json: AsJson = False) -> None:
    """Show what is different from main as the run found it: columns, counts, and some of the rows that were added."""
    _show(run, as_json, rows=True)


def _show(run: str, as_json: bool, rows: bool) -> None:
    async def command(context: CommandContext, _: None) -> int:
        catalog, io = open_catalog(context.settings), file_io_properties(context.settings)
        found = find_quarantined_branch(catalog, run)
        parts = list(read_held_tables(catalog, io, found, rows=rows))
        run_ref = RunRef(run_id=found.run_id, workflow_id="", pipeline=found.pipeline, label="", attempt=0)
        report = ReportStore(context.settings.lake, io).whole(run_ref)
        if as_json:
            tables = {
                part.name: {
                    "change": part.change.model_dump(mode="json") if part.change else None,
                    "columns": part.columns,
                    "bytes": part.bytes,
                    "rows": part.rows,
                }
                for part in parts
            }
            checks = report.model_dump(mode="json")["checks"] if report else []
            print(json.dumps({**found.fields(), "tables": tables, "checks": checks}, default=str))
            return 0
        for name, value in found.fields().items():
            context.console.print(f"[dim]{name:>12}[/]  {escape(str(value))}", highlight=False, soft_wrap=True)
        for part in parts:
            _print_part(context, part)
        for check in report.checks if report else []:
            context.console.print(verdict_line(check))
        return 0

    run_command(command, as_json, no_preparation)


def _print_part(context: CommandContext, part: Any) -> None:
    change = part.change
    said = f"{change.operation}: +{change.added_rows:,} -{change.deleted_rows:,} rows" if change else "dropped"
    context.console.print(f"[bold]{part.name}[/]  {said}, {format_size(part.bytes)}", highlight=False)
    for column in part.columns:
        context.console.print(f"    {escape(column)}", highlight=False)
    for row in part.rows:
        context.console.print(f"    + {escape(json.dumps(row, default=str, ensure_ascii=False))}", highlight=False)


@app.command()
def discard(run: What, by: By = None, as_json: AsJson = False) -> None:
    """Delete a quarantined branch for good."""
    _order(run, "discard", by, as_json)


@app.command()
def keep(
    run: What,
    how_long: Annotated[str, typer.Option("--for", help="How long from now: 30d, 12h.")],
    by: By = None,
    as_json: AsJson = False,
) -> None:
    """Keep a quarantined branch longer, or less long."""
    try:
        until = datetime.now(timezone.utc) + timedelta(seconds=seconds(how_long))
    except ValueError as error:
        refuse(str(error))
    _order(run, "keep", by, as_json, until.isoformat(timespec="seconds"))


def _order(run: str, action: Any, by: str | None, as_json: bool, until: str = "") -> None:
    async def command(context: CommandContext, _: None) -> int:
        found = find_quarantined_branch(open_catalog(context.settings), run)
        left = await _kept_house(context, action, found, by, until)
        words = {"discard": f"Deleted {found.branch}.", "keep": f"Kept {found.branch} until {until}."}
        context.print_result({"action": action, "branch": found.branch, "left": left, "until": until}, words[action])
        return 0

    run_command(command, as_json, no_preparation)


async def _kept_house(
    context: CommandContext, action: Any, found: QuarantinedBranch, by: str | None, until: str = ""
) -> str:
    order = ManageQuarantineInput(action=action, branch=found.branch, by=by or getpass.getuser(), until=until)
    try:
        return await context.client.execute_workflow(
            ManageQuarantine.run,
            order,
            id=f"house-{action}-{found.run_id}-{uuid.uuid4().hex[:8]}",
            task_queue=context.settings.sluice_task_queue,
            execution_timeout=timedelta(minutes=15),
        )
    except WorkflowFailureError as failed:
        cause = failed.cause.__cause__ or failed.cause
        raise InvalidPipeline(f"this could not be done: {cause}") from failed


@app.command()
def release(run: What, pipeline: PipelineFile = None, detach: Detach = False, as_json: AsJson = False) -> None:
    """Audit what was kept out again, on main as it is now, and publish it if it passes: a run of its own."""
    _again(run, pipeline, [], detach, as_json)


@app.command()
def repair(
    run: What,
    sql: Annotated[
        list[str] | None, typer.Option("--sql", help="A statement that repairs the rows; several run in this order.")
    ] = None,
    pipeline: PipelineFile = None,
    detach: Detach = False,
    as_json: AsJson = False,
) -> None:
    """Repair quarantined rows by SQL, audit them again, and publish them if they pass. This starts a new run."""
    if not sql:
        refuse(
            f"say by --sql how the rows are repaired, as in: quarantine repair {run} "
            '--sql "UPDATE namespace.table SET column = 0 WHERE column < 0". '
            "Rows in a table's __quarantine table are repaired by `requeue`"
        )
    try:
        statements = Write(mode="sql", statements=sql).statements
    except ValueError as error:
        refuse(str(error))
    _again(run, pipeline, statements, detach, as_json)


def _again(run: str, file: Path | None, statements: list[str], detach: bool, as_json: bool) -> None:
    def prepare() -> Pipeline | None:
        return load_pipeline(file, read_environment(), Path.cwd()) if file else None

    async def command(context: CommandContext, stated: Pipeline | None) -> int:
        catalog = open_catalog(context.settings)
        found = find_quarantined_branch(catalog, run)
        earlier = await read_request(context.client, found.workflow_id, found.run_id)
        if earlier is None and stated is None:
            raise InvalidPipeline(f"Temporal has forgotten run {found.run_id}: name its pipeline file by --pipeline")
        pipeline = stated or (earlier.pipeline if earlier else None)
        assert pipeline
        if pipeline.name != found.pipeline:
            raise InvalidPipeline(f"{found.branch} is of the pipeline {found.pipeline}, not of {pipeline.name}")
        resume = _resume(found, statements)
        run_input = earlier.input if earlier else None
        return await start_and_follow(context, pipeline, run_input, StartOptions(resume=resume), detach=detach)

    run_command(command, as_json, prepare)


def _resume(found: QuarantinedBranch, statements: list[str]) -> Resume:
    return Resume(
        branch=found.branch,
        base=found.base,
        head=found.audited,
        statements=statements,
        obsolete_branches=[found.branch],
    )
