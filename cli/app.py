"""The commands of the front door, their options, and their exit codes."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from temporalio.client import WorkflowUpdateFailedError

from cli.approving import ruling_on
from cli.checks import import_file, list_checks
from cli.context import WRONG_USE, CommandContext, enter, nothing
from cli.follow import begin, followed
from cli.keys import approver_key, codec_key
from cli.lazy_commands import ELSEWHERE, LazyGroup
from cli.screens import print_status, runs_table
from cli.watch import progress_of
from runtime.find_run import find_run, recent_runs, result_of, status_of
from runtime.start_run import find_input, load_pipeline
from sluice.contracts.run import RunInput
from sluice.errors import InvalidPipeline, ServiceUnavailable
from sluice.pipeline.model import Pipeline
from sluice.settings import read_environment
from workflows.write_audit_publish import WriteAuditPublish

_DEFAULT = "run"

app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    help="Write on a branch, audit exactly that, publish it by one merge, or keep it out and say why. "
    "`run_workflow.py FILE` is short for `run_workflow.py run FILE`.",
    epilog="Exit codes: 0 published, 2 wrong use or invalid pipeline, 3 stopped by the audit, "
    "4 rejected or expired, 5 cancelled, 6 failed, 7 a service cannot be reached, 130 detached.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output, and nothing else.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run as `list` names it, or a pipeline: its latest run.")]
By = Annotated[str | None, typer.Option("--by", help="Who decides.", show_default="you")]


@app.command(_DEFAULT)
def run(
    pipeline: Annotated[
        Path | None, typer.Argument(help="A pipeline file; without one, that of the environment.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Publish an input that was published before.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Start the run, and do not follow it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start a run and follow it. Ctrl-C detaches; the run goes on. This is what a bare file name means."""

    def before() -> tuple[Pipeline, RunInput]:
        loaded = load_pipeline(pipeline, read_environment())
        return loaded, find_input(loaded)

    begin(before, again, detach, as_json)


@app.command()
def watch(run: Run, as_json: AsJson = False) -> None:
    """Follow a run to its end, and report it."""

    async def act(door: CommandContext, _: None) -> int:
        return await followed(door, await find_run(door.client, run))

    enter(act, as_json, nothing)


@app.command()
def status(run: Run, as_json: AsJson = False) -> None:
    """Show how a run stands or ended. The exit code says only whether that could be told."""

    async def act(door: CommandContext, _: None) -> int:
        found = await find_run(door.client, run)
        if found.ended:
            result = await result_of(door.client, found.description)
            assert result is not None
            if as_json:
                print(json.dumps({**result.model_dump(mode="json"), "stage": "ended", "deadline": ""}))
            else:
                door.finish(result)
            return 0
        standing_now = await status_of(found.handle)
        if standing_now is None:
            raise ServiceUnavailable(f"no worker answers for {run}: start one with `python worker.py` or `make up`")
        if as_json:
            shape = standing_now.result.model_dump(mode="json")
            print(json.dumps({**shape, "stage": standing_now.stage, "deadline": standing_now.deadline}))
            return 0
        print_status(standing_now, await progress_of(found.description), door.console)
        door.finish(standing_now.result)
        return 0

    enter(act, as_json, nothing)


@app.command("list")
def list_runs(
    limit: Annotated[int, typer.Option(help="How many, the newest first.", min=1, max=1000)] = 20,
    as_json: AsJson = False,
) -> None:
    """List runs."""

    async def act(door: CommandContext, _: None) -> int:
        rows = [_row(execution) for execution in await recent_runs(door.client, limit)]
        if as_json:
            print(json.dumps({"runs": rows}))
            return 0
        cells = [
            (
                row["workflow_id"],
                row["pipeline"],
                row["outcome"] or row["state"],
                row["started"],
                ", ".join(row["tables"]),
            )
            for row in rows
        ]
        door.console.print(runs_table(cells) if cells else "There are no runs yet.")
        return 0

    enter(act, as_json, nothing)


@app.command()
def approve(
    run: Run, by: By = None, reason: Annotated[str, typer.Option(help="Why.")] = "", as_json: AsJson = False
) -> None:
    """Say yes to a run that waits for approval."""
    _decide(run, approve=True, by=by, reason=reason, as_json=as_json)


@app.command()
def reject(run: Run, reason: Annotated[str, typer.Option(help="Why.")], by: By = None, as_json: AsJson = False) -> None:
    """Say no to a run that waits for approval."""
    _decide(run, approve=False, by=by, reason=reason, as_json=as_json)


@app.command()
def cancel(run: Run, as_json: AsJson = False) -> None:
    """Cancel a run: its Spark is ended, its branch deleted; main stays as it is."""

    async def act(door: CommandContext, _: None) -> int:
        found = await find_run(door.client, run)
        if found.ended:
            raise InvalidPipeline(f"{found.handle.id} has ended: there is nothing to cancel")
        await found.handle.cancel()
        door.say({"workflow_id": found.handle.id, "cancel_requested": True}, f"Asked {found.handle.id} to stop.")
        return 0

    enter(act, as_json, nothing)


app.command("checks")(list_checks)
app.command("import")(import_file)
app.command("approver-key")(approver_key)
app.command("codec-key")(codec_key)


def main(arguments: Sequence[str]) -> None:
    """Run a command and leave with its exit code. A bare file name, or nothing, means `run`."""
    known = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    known |= {*ELSEWHERE}
    words = list(arguments)
    if not words or (words[0] not in known and words[0] not in ("--help", "-h")):
        words.insert(0, _DEFAULT)
    try:
        app(words, prog_name="run_workflow.py", standalone_mode=True)
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else WRONG_USE
    # Short-lived programs on Temporal's native client can abort while Python shuts down, and the exit code
    # with them: leave without that.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _decide(run: str, approve: bool, by: str | None, reason: str, as_json: bool) -> None:
    async def act(door: CommandContext, _: None) -> int:
        found = await find_run(door.client, run)
        if found.ended:
            raise InvalidPipeline(f"{found.handle.id} has ended: there is nothing to decide")
        seen = await status_of(found.handle)
        ruling = ruling_on(found.handle.run_id or "", seen, approve, by, reason, door.settings)
        try:
            ruled = await found.handle.execute_update(WriteAuditPublish.decide, ruling)
        except WorkflowUpdateFailedError as refused:
            raise InvalidPipeline(f"this does not count: {refused.cause}") from refused
        said = (
            f"{'Approved' if approve else 'Rejected'} {found.handle.id} as {ruled.by}, for {ruled.audited_hash[:12]}."
        )
        door.say(ruled.model_dump(mode="json"), said)
        return 0

    enter(act, as_json, nothing)


def _row(execution: Any) -> dict[str, Any]:
    found = execution.search_attributes
    first = {name: values[0] for name, values in found.items() if name.startswith("Sluice") and values}
    return {
        "workflow_id": execution.id,
        "run_id": execution.run_id,
        "pipeline": first.get("SluicePipeline", execution.id.rsplit("-", 1)[0]),
        "state": execution.status.name.lower() if execution.status else "",
        "outcome": first.get("SluiceOutcome"),
        "started": execution.start_time.isoformat(timespec="seconds"),
        "tables": list(found.get("SluiceTable", [])),
    }
