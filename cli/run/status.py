"""The command `status`: show a run."""

from rich.text import Text
from temporalio.client import WorkflowExecution

from cli.context import CommandContext, no_preparation, run_command
from cli.layout import print_command, print_detail, print_line
from cli.options import AsJson, Report, Run
from cli.program import program
from cli.run.report import print_status, report_result
from runtime.approval.shown_report import report_name, shown_report
from runtime.missing_worker import no_worker
from runtime.run.find_run import RunLookup, find_run
from runtime.run.job_progress import read_progress
from runtime.run.listed_run import listed_run
from runtime.run.listed_runs import find_quarantines, find_rollbacks
from runtime.run.reported_run import answered_status, read_ended, report_run
from sluice.contracts.run import WAITING, RunResult
from sluice.presentation.next_steps import has_quarantine
from sluice.presentation.waivers import how_to_waive
from sluice.times import format_time


def status(run: Run, as_json: AsJson = False, report: Report = None) -> None:
    """Show the status of a run, or its result. The exit code says only whether the status could be read."""

    async def command(context: CommandContext, _: None) -> int:
        lookup = await find_run(context.client, run)
        if as_json:
            print((await report_run(context.client, lookup)).model_dump_json())
        elif lookup.ended:
            result = await read_ended(context.client, lookup)
            ended = await _why_ended(context, result, lookup.description)
            report_result(context, result, may_decide=not ended)
            await _print_work(context, lookup.description)
            if ended:
                print_detail(context.console, "quarantine", ended)
            await _print_rollbacks(context, lookup.description)
        else:
            await _print_running(context, lookup)
        return 0

    run_command(command, as_json, no_preparation, report, read_only=True)


async def _why_ended(context: CommandContext, result: RunResult, run: WorkflowExecution) -> str:
    """Return the reason why the quarantine of a run is no longer kept; empty if it is, or if that is not known."""
    if not has_quarantine(result):
        return ""
    known = await find_quarantines(context.client, context.settings.installation, [run])
    if known.kept is None or result.run_id in known.kept:
        return ""
    by = known.released_by.get(result.run_id)
    return f"published by {by}" if by else "no longer kept: it was discarded, or its time ended"


async def _print_work(context: CommandContext, run: WorkflowExecution) -> None:
    """Print what a run does, with its partition: the runs of a backfill have nothing else that differs."""
    if summary := (await listed_run(run)).summary:
        print_detail(context.console, "work", summary)


async def _print_rollbacks(context: CommandContext, run: WorkflowExecution) -> None:
    """Print the runs that an ended run rolled back, and the run that rolled it back."""
    listed = await listed_run(run)
    if listed.rolls_back:
        print_detail(context.console, "rollback of", ", ".join(listed.rolls_back))
    if listed.outcome == "published" and (by := (await find_rollbacks(context.client, [run])).get(run.run_id)):
        print_detail(context.console, "rolled back", f"by {by}: main no longer has what this run published")


async def _print_listed(context: CommandContext, lookup: RunLookup) -> None:
    """Print what Temporal knows about a run while no worker answers for it."""
    run = await listed_run(lookup.description)
    started = format_time(run.started)
    print_line(
        context.console, Text(f"{run.workflow_id}  ", style="bold"), f"{run.state} since {started}: {run.summary}"
    )
    print_detail(context.console, "stage", "not known without a worker; the run goes on when one starts")


async def _print_running(context: CommandContext, lookup: RunLookup) -> None:
    current = await answered_status(lookup)
    if current is None:
        await _print_listed(context, lookup)
        raise no_worker(f"for {lookup.handle.id}")
    print_status(current, await read_progress(lookup.description), context.console)
    report_result(context, current.result)
    await _print_work(context, lookup.description)
    if current.stage == WAITING:
        named = f"{lookup.handle.id} --hash {report_name(shown_report(current.result))}"
        if not how_to_waive(current.result):
            print_command(context.console, "to approve", f"{program()} approve {named}")
        print_command(context.console, "to reject", f"{program()} reject {named} --reason ...")
