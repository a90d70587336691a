"""The commands of the command line, their options, and their exit codes."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from temporalio.client import WorkflowUpdateFailedError

from cli.approval.approving import WAITING, make_decision, refusal_in, report_name, shown_report
from cli.approval.waiving import NO_WAIVER, WaiverRequest
from cli.arrivals.load import check_start_by_hand
from cli.context import WRONG_USE, CommandContext, ReportFormat, no_preparation, print_error, run_command
from cli.installation.keys import approver_key, codec_key
from cli.lazy_commands import LAZY_COMMANDS, LazyGroup
from cli.pipeline.check_pipeline import check_pipeline, plan_pipeline
from cli.pipeline.checks import list_checks
from cli.pipeline.values import OverYounger, Partition, ScheduledFor
from cli.program import program
from cli.run.cancel import cancel
from cli.run.follow import follow_and_report, start_and_follow, with_options
from cli.run.report import print_detail, print_status
from cli.run.watch import read_progress
from cli.unknown_command import describe_usage, unknown_command
from runtime.pipeline.pipeline_input import InspectedInput, inspect_input, load_pipeline
from runtime.pipeline.placeholder_values import order_of, placeholder_values
from runtime.registration.registrations import with_registrations_now
from runtime.run.find_run import RunLookup, find_run, find_run_to_end, query_status, read_result
from runtime.run.start_run import StartOptions
from runtime.store_access import export_store_access
from sluice.errors import InvalidPipeline, ServiceUnavailable, SluiceError
from sluice.pipeline.model import Pipeline
from sluice.presentation.decisions import describe_wait, describe_waivers
from sluice.presentation.waivers import how_to_waive
from sluice.settings import read_environment
from workflows.write_audit_publish import WriteAuditPublish

_DEFAULT = "run"
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Typer's error for wrong arguments. Typer itself prints it as a box of several lines."""

app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    help="Run pipelines: write on a branch, audit exactly that, and publish it by one merge, or say why not. "
    "`run_workflow.py FILE` is short for `run_workflow.py run FILE`.",
    epilog="Exit codes: 0 published, checked or skipped, 2 wrong use or invalid pipeline, 3 stopped by the audit, "
    "4 rejected or expired, 5 cancelled, 6 failed, 7 a service cannot be reached, 130 detached.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output, and nothing else.")]
Report = Annotated[
    ReportFormat | None,
    typer.Option("--report", help="Print the report to standard output in this form, and nothing else: md."),
]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run as `list` shows it, or a pipeline for its latest run.")]
By = Annotated[str | None, typer.Option("--by", help="The person who decides.", show_default="you")]
Named = Annotated[
    str,
    typer.Option("--hash", help="The report that you saw, as `status` shows it: HASH or HASH:DIGEST.", metavar="HASH"),
]


@app.command(_DEFAULT)
def run(
    pipeline: Annotated[
        Path | None,
        typer.Argument(help="A pipeline file; without one, the pipeline of the environment (see .env.example)."),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Publish an input that was published before.")] = False,
    no_publish: Annotated[
        bool, typer.Option("--no-publish", help="Write and audit on a branch, delete it, and end `checked`.")
    ] = False,
    message: Annotated[str | None, typer.Option("--message", help="The message of the merge commit.")] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", metavar="KEY=VALUE", help="Add to the merge commit's metadata; may be repeated."),
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Start the run, and do not follow it.")] = False,
    scheduled_for: ScheduledFor = "",
    partition: Partition = "",
    over_younger: OverYounger = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before loading files of a landing zone that is not deployed.")
    ] = False,
    as_json: AsJson = False,
    report: Report = None,
) -> None:
    """Start a run and follow it. Ctrl-C detaches; the run goes on. `run` may be left out."""

    def prepare() -> tuple[Pipeline, InspectedInput | None]:
        values = placeholder_values(pipeline, scheduled_for, partition)
        loaded = load_pipeline(pipeline, read_environment(), Path.cwd(), values)
        loaded = with_options(loaded, message, metadata or (), publish=not no_publish)
        if loaded.arrival and not no_publish:
            return loaded, None
        inspected = inspect_input(loaded, pipeline)
        _print_hints(inspected.hints)
        return loaded, inspected

    async def command(context: CommandContext, prepared: tuple[Pipeline, InspectedInput | None]) -> int:
        loaded, inspected = prepared
        if not no_publish:
            loaded = await check_start_by_hand(context, loaded, yes=yes)
        inspected = inspected or inspect_input(loaded, pipeline)
        order = order_of(pipeline, scheduled_for, partition, over_younger=over_younger)
        options = StartOptions(again=again, publish=not no_publish, order=order)
        code = await start_and_follow(context, loaded, inspected.run_input, options, detach=detach)
        if not detach:
            _print_hints(inspected.hints)  # repeated: the first print has scrolled far up by now
        return code

    run_command(command, as_json, prepare, report)


def _print_hints(hints: Sequence[str]) -> None:
    for hint in hints:
        print(f"hint: {hint}", file=sys.stderr)


@app.command()
def watch(run: Run, as_json: AsJson = False) -> None:
    """Follow a run to its end, and report it."""

    async def command(context: CommandContext, _: None) -> int:
        return await follow_and_report(context, await find_run(context.client, run))

    run_command(command, as_json, no_preparation)


@app.command()
def status(run: Run, as_json: AsJson = False, report: Report = None) -> None:
    """Show the status of a run, or its result. The exit code says only whether the status could be read."""

    async def command(context: CommandContext, _: None) -> int:
        lookup = await find_run(context.client, run)
        await (_print_ended(context, lookup) if lookup.ended else _print_running(context, lookup))
        return 0

    run_command(command, as_json, no_preparation, report)


async def _print_ended(context: CommandContext, lookup: RunLookup) -> None:
    result = await read_result(context.client, lookup.description)
    assert result is not None
    result = await with_registrations_now(context.client, result)
    if context.as_json:
        print(json.dumps({**result.model_dump(mode="json"), "stage": "ended", "deadline": ""}))
    else:
        context.report_result(result)


async def _print_running(context: CommandContext, lookup: RunLookup) -> None:
    current = await query_status(lookup.handle)
    if current is None:
        raise ServiceUnavailable(
            f"no worker answers for {lookup.handle.id}: start one with `python worker.py` or `make up`"
        )
    if context.as_json:
        fields = current.result.model_dump(mode="json")
        digest = {"audit_digest": current.audit_digest}
        print(json.dumps({**fields, "stage": current.stage, "deadline": current.deadline, **digest}))
        return
    print_status(current, await read_progress(lookup.description), context.console)
    context.report_result(current.result)
    if current.stage == WAITING:
        named = f"{lookup.handle.id} --hash {report_name(shown_report(current.result))}"
        if not how_to_waive(current.result):
            print_detail(context.console, "to approve", f"{program()} approve {named}")
        print_detail(context.console, "to reject", f"{program()} reject {named} --reason")


@app.command()
def approve(
    run: Run,
    by: By = None,
    reason: Annotated[str, typer.Option(help="The reason.")] = "",
    named: Named = "",
    waive: Annotated[
        list[str] | None,
        typer.Option("--waive", metavar="CHECK", help="Waive a failed check, named as in the report; may be repeated."),
    ] = None,
    until: Annotated[
        str,
        typer.Option("--until", metavar="DATE", help="When the waiver ends: 2026-12-01, or a time."),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Approve a run that waits for approval. Without --hash, its report is shown, and you confirm.

    If the audit failed, each failed check needs a waiver: --waive CHECK --reason … --until DATE.
    """
    request = WaiverRequest(waive or (), until)
    _decide(run, approve=True, by=by, reason=reason, named=named, as_json=as_json, request=request)


@app.command()
def reject(
    run: Run,
    reason: Annotated[str, typer.Option(help="The reason.")],
    by: By = None,
    named: Named = "",
    as_json: AsJson = False,
) -> None:
    """Reject a run that waits for approval. Without --hash, its report is shown, and you confirm."""
    _decide(run, approve=False, by=by, reason=reason, named=named, as_json=as_json)


app.command("cancel")(cancel)
app.command("check")(check_pipeline)
app.command("plan")(plan_pipeline)
app.command("checks")(list_checks)
app.command("approver-key")(approver_key)
app.command("codec-key")(codec_key)


def main(arguments: Sequence[str]) -> None:
    """Run a command and exit with its exit code. A bare file name, or no argument, means `run`."""
    known = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    known |= {*LAZY_COMMANDS}
    words = list(arguments)
    problem = ""
    if not words or (words[0] not in known and words[0] not in ("--help", "-h")):
        problem = unknown_command(words[0], known) if words else ""
        words.insert(0, _DEFAULT)
    try:
        export_store_access(read_environment())
        if problem:
            code = print_error(InvalidPipeline(problem), "--json" in words, WRONG_USE)
        else:
            code = app(words, prog_name="run_workflow.py", standalone_mode=False) or 0
    except _UsageError as error:
        problem, code = describe_usage(error), WRONG_USE
        if problem:  # empty for a group of commands that was called without one: it has printed its help
            print_error(InvalidPipeline(problem), "--json" in words, WRONG_USE)
    except typer.Abort:
        code = print_error(InvalidPipeline("aborted"), "--json" in words, WRONG_USE)
    except SluiceError as error:
        code = print_error(error, "--json" in words, WRONG_USE)
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else WRONG_USE
    # Temporal's native client can abort a short-lived program while Python shuts down, and the exit code is lost:
    # exit without that shutdown.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _decide(
    run: str,
    *,
    approve: bool,
    by: str | None,
    reason: str,
    named: str,
    as_json: bool,
    request: WaiverRequest = NO_WAIVER,
) -> None:
    async def command(context: CommandContext, _: None) -> int:
        lookup = await find_run_to_end(context.client, run)
        workflow_id = lookup.handle.id
        if lookup.ended:
            raise InvalidPipeline(f"{workflow_id} has ended: there is nothing to decide")
        status = await query_status(lookup.handle)
        run_id = lookup.handle.run_id or ""
        decision = make_decision(
            run_id,
            status,
            approve=approve,
            by=by,
            reason=reason,
            named=named,
            settings=context.settings,
            console=context.console,
            link=context.link(workflow_id, run_id),
            request=request,
        )
        try:
            counted = await lookup.handle.execute_update(WriteAuditPublish.decide, decision)
        except WorkflowUpdateFailedError as error:
            raise InvalidPipeline(f"the decision was refused: {refusal_in(error)}") from error
        text = f"{'Approved' if approve else 'Rejected'} {workflow_id} as {counted.by}"
        now = await query_status(lookup.handle) if approve else None
        text += f" ({describe_wait(now)})" if now else ""
        text += f", for the audited hash {counted.audited_hash[:12]}{describe_waivers(counted)}."
        context.print_result(counted.model_dump(mode="json"), text)
        return 0

    run_command(command, as_json, lambda: request.check(reason))
