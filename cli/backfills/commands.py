"""The commands of `backfill`: run a pipeline once for each of many partitions, a few at a time."""

import getpass
import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.text import Text
from typer import Context
from typer.core import TyperGroup

from cli.backfills.cancel import cancel_backfill_of
from cli.backfills.decisions import DecisionRequest, check_reason, decide_backfill
from cli.backfills.grid import (
    describe_backfill,
    describe_joint_publish,
    follow_backfill,
    print_failures,
    read_stages,
    totals,
)
from cli.backfills.start import StartBackfill, compare, connect_and_compare
from cli.confirming import Yes
from cli.context import CommandContext, no_preparation, run_command
from cli.exit_codes import DETACHED
from cli.layout import print_command, print_line
from cli.lazy_commands import show_help
from cli.local import check_locally
from cli.options import AsJson, By
from cli.pipeline.values import OLDER_ROWS_WIN, OverYounger
from cli.program import next_commands, program
from runtime.arrivals.conflicting_starts import refuse_backfill
from runtime.backfills.backfill_order import refuse_unloadable_partitions
from runtime.backfills.backfills import (
    change_backfill,
    read_backfill,
    start_backfill,
)
from sluice.backfills.ending import backfill_exit_code, option_to_repeat
from sluice.backfills.progress import FAILURES, count_states, partition_states
from sluice.contracts.backfill import MAX_WINDOW, BackfillChange, BackfillInput, BackfillStatus
from sluice.errors import ServiceUnavailable
from sluice.presentation.backfills import shown_counts, shown_state

_DETACHED = "Detached; the backfill goes on. `backfill watch {0}` follows it again, `backfill cancel {0}` ends it."
_DEFAULT = "start"


class StartByDefault(TyperGroup):
    """A command group that takes an unknown first word as the argument of `start`."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:  # type: ignore[override]  # as in lazy_commands.py
        """Insert `start` if the first word is not a command."""
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args.insert(0, _DEFAULT)
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=StartByDefault,
    add_completion=False,
    rich_markup_mode=None,
    help="Run a pipeline for each of many partitions. `backfill FILE` is short for `backfill start FILE`.",
)
app.callback(invoke_without_command=True)(show_help)

Reason = Annotated[str, typer.Option("--reason", help="The reason.")]
Reports = Annotated[
    list[str] | None,
    typer.Option(
        "--hash", metavar="HASH:DIGEST", help="Decide about this report, without a question; may be repeated."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print which runs wait, and decide nothing.")]
Named = Annotated[str, typer.Argument(metavar="PIPELINE", help="The name of a pipeline.")]


@app.command(_DEFAULT)
def start(
    file: Annotated[Path, typer.Argument(help="A pipeline file with {{ partition }} in it.")],
    partitions: Annotated[
        str, typer.Option("--partitions", help="Partitions: 2018-01..2020-12, 2018..2020, days in this form, or a,b,c.")
    ] = "",
    only: Annotated[
        Literal["failed", "missing"] | None,
        typer.Option("--only", help="failed: those that the last backfill did not publish; missing: what main lacks."),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency",
            help="Maximum number of partitions that run at a time.",
            show_default="4, or 1 where the order matters",
            min=1,
            max=MAX_WINDOW,
        ),
    ] = None,
    stop_after: Annotated[
        int, typer.Option("--stop-after", help="Pause after this number of failures; 0 never pauses.", min=0)
    ] = 3,
    publish: Annotated[
        Literal["each", "together"],
        typer.Option("--publish", help="each: a merge for each partition; together: one merge for all of them."),
    ] = "each",
    again: Annotated[bool, typer.Option("--again", help="Publish files that were published before.")] = False,
    over_younger: OverYounger = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what each partition would load, and start nothing.")
    ] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Start it, and do not follow it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start a backfill and follow it, or add partitions to the one under way. Ctrl-C detaches; it goes on."""
    asked = StartBackfill(file, partitions, only, concurrency, stop_after, publish, again, over_younger)
    if dry_run and only != "failed":  # this needs no server
        check_locally(lambda: asked.print_plan(given := asked.prepare(), as_json, connect_and_compare(given)), as_json)
        return

    async def command(context: CommandContext, given: BackfillInput) -> int:
        selected = await asked.select(context, given)
        if not selected.progress.partitions:
            context.print_result({"pipeline": given.name, "partitions": {}}, f"No partition of {given.name} failed.")
            return 0
        if dry_run:
            compared = await compare(context.client, context.settings.installation, selected)
            return asked.print_plan(selected, as_json, compared)
        return await _start(context, selected, over_younger=over_younger, detach=detach)

    run_command(command, as_json, asked.prepare, read_only=dry_run)


async def _start(context: CommandContext, given: BackfillInput, *, over_younger: bool, detach: bool) -> int:
    """Start a backfill, and follow it unless the person detaches; return the exit code."""
    await refuse_backfill(context.client, context.settings.installation, given.pipeline, given.progress.partitions)
    with suppress(ServiceUnavailable):  # then the runs decide
        await refuse_unloadable_partitions(context.client, context.installation_with_id, given)
    context.interruption.message = (
        f"Interrupted; the backfill may have been started anyway: `backfill status {given.name}` shows it."
    )
    if over_younger:
        context.console.print(OLDER_ROWS_WIN, highlight=False)
    handle, attached = await start_backfill(context.client, context.installation_with_id, given)
    context.interruption.message = _DETACHED.format(given.name)
    context.console.print(f"{'Added to' if attached else 'Started'} [bold]{handle.id}[/]", highlight=False)
    if detach:
        await context.hint_at_missing_worker(handle.id)
        fields = {"workflow_id": handle.id, "pipeline": given.name, "attached": attached}
        following = next_commands(given.name, "backfill")
        context.print_result({**fields, "partitions": given.progress.partitions}, following)
        return 0
    return await _follow(context, given.name)


@app.command()
def watch(pipeline: Named, as_json: AsJson = False) -> None:
    """Follow a backfill to its end, and report it."""

    async def command(context: CommandContext, _: None) -> int:
        await read_backfill(context.client, context.installation_with_id, pipeline)
        context.interruption.message = _DETACHED.format(pipeline)
        return await _follow(context, pipeline)

    run_command(command, as_json, no_preparation, read_only=True)


@app.command()
def status(pipeline: Named, as_json: AsJson = False) -> None:
    """Show the state of a pipeline's latest backfill. The exit code says only whether it could be read."""

    async def command(context: CommandContext, _: None) -> int:
        now = await read_backfill(context.client, context.installation_with_id, pipeline)
        await _print_status(context, now)
        return 0

    run_command(command, as_json, no_preparation, read_only=True)


@app.command()
def pause(
    pipeline: Named,
    reason: Annotated[str, typer.Option("--reason", help="The reason, which `backfill status` shows.")] = "",
    as_json: AsJson = False,
) -> None:
    """Pause a backfill: start no more partitions. Running partitions go on."""
    _change(pipeline, BackfillChange(action="pause", by=getpass.getuser(), reason=reason[:500]), as_json)


@app.command()
def resume(pipeline: Named, as_json: AsJson = False) -> None:
    """Resume a paused backfill, and count failures from 0 again."""
    _change(pipeline, BackfillChange(action="resume", by=getpass.getuser()), as_json)


@app.command()
def retry(pipeline: Named, as_json: AsJson = False) -> None:
    """Restart partitions that failed, were kept out or were cancelled, while the backfill is under way."""
    _change(pipeline, BackfillChange(action="retry", by=getpass.getuser()), as_json)


@app.command()
def window(
    pipeline: Named,
    size: Annotated[
        int, typer.Argument(help="Maximum number of partitions that run at a time.", min=1, max=MAX_WINDOW)
    ],
    as_json: AsJson = False,
) -> None:
    """Change how many partitions run at a time. Running partitions go on."""
    _change(pipeline, BackfillChange(action="window", by=getpass.getuser(), window=size), as_json)


@app.command()
def approve(
    pipeline: Named,
    by: By = None,
    reason: Reason = "",
    named: Reports = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Approve the runs that wait for approval: shows them, asks once, and decides about each by its audited hash."""
    request = DecisionRequest(approve=True, by=by, reason=reason, named=named or (), is_dry_run=dry_run)
    _decide(pipeline, request, as_json=as_json)


@app.command()
def reject(
    pipeline: Named,
    reason: Annotated[str, typer.Option("--reason", help="The reason.")],
    by: By = None,
    named: Reports = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Reject the runs that wait for approval: shows them, asks once, and decides about each by its audited hash."""
    request = DecisionRequest(approve=False, by=by, reason=reason, named=named or (), is_dry_run=dry_run)
    _decide(pipeline, request, as_json=as_json)


@app.command()
def cancel(pipeline: Named, yes: Yes = False, as_json: AsJson = False) -> None:
    """Cancel a backfill: start nothing more, cancel its runs, and delete what was collected.

    If the worker cannot continue the backfill, a second `cancel` ends it at once, and cancels its runs.
    """
    run_command(lambda context, _: cancel_backfill_of(context, pipeline, yes=yes), as_json, no_preparation)


def _decide(pipeline: str, request: DecisionRequest, *, as_json: bool) -> None:
    async def command(context: CommandContext, _: None) -> int:
        return await decide_backfill(context, pipeline, request)

    run_command(command, as_json, lambda: check_reason(request), read_only=request.is_dry_run)


def _change(pipeline: str, change: BackfillChange, as_json: bool) -> None:
    async def command(context: CommandContext, _: None) -> int:
        await _print_status(
            context, await change_backfill(context.client, context.installation_with_id, pipeline, change)
        )
        return 0

    run_command(command, as_json, no_preparation)


async def _print_status(context: CommandContext, now: BackfillStatus) -> None:
    if context.as_json:
        print(json.dumps(_fields(now)))
        return
    stages = await read_stages(context.client, now)
    for line in describe_backfill(now, stages, context.console.width):
        context.console.print(line, soft_wrap=True)
    print_failures(context.console, now)
    if not (counts := count_states(now.progress))["waiting"] and not counts["running"]:
        _print_again(context, now)


def _print_again(context: CommandContext, ended: BackfillStatus) -> None:
    """Print the command that loads the partitions which a backfill did not publish, if there are any."""
    if any(state in FAILURES for state in partition_states(ended.progress).values()):
        again = f"{program()} backfill {ended.pipeline} --only failed{option_to_repeat(ended)}"
        print_command(context.console, "to retry", again)


async def _follow(context: CommandContext, pipeline: str) -> int:
    """Follow a backfill, report its end or why it is paused, and return the exit code."""
    now, workflow = await follow_backfill(context, pipeline)
    code = backfill_exit_code(now, workflow)
    waiting = count_states(now.progress)["waiting"]
    if waiting or (now.together and not now.together.ended):
        code = code or DETACHED
    if context.as_json:
        print(json.dumps({**_fields(now), "exit_code": code}))
        return code
    if workflow == "terminated":
        what = "its workflow was terminated, and its runs go on: start it again, or cancel it"
        print_line(context.console, Text("ended  "), what)
    context.console.print(totals(now), soft_wrap=True)
    if now.together:
        print_line(context.console, Text("merge  "), describe_joint_publish(now.together))
    if workflow == "running" and (waiting or (now.together and now.progress.paused)):
        print_line(context.console, Text("paused "), now.progress.paused)
        if waiting and not now.progress.in_order:
            print_command(context.console, "to go on", f"{program()} backfill resume {pipeline}")
        print_command(context.console, "to retry all", f"{program()} backfill retry {pipeline}")
        if now.together:
            print_command(context.console, "to delete the branch", f"{program()} backfill cancel {pipeline}")
    else:
        _print_again(context, now)
    return code


def _fields(now: BackfillStatus) -> dict[str, Any]:
    notes = {name: note.model_dump(mode="json") for name, note in now.progress.notes.items()}
    states = partition_states(now.progress)
    return {
        "pipeline": now.name,
        "starter": now.starter,
        "paused": now.progress.paused,
        "window": now.progress.window,
        "counts": dict(shown_counts(now)),
        "rows_added": now.progress.rows_added,
        "together": now.together.model_dump(mode="json") if now.together else None,
        "partitions": {
            name: {"state": shown_state(now, state), **notes.get(name, {})} for name, state in states.items()
        },
    }
