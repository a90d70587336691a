"""The commands `watch` and `status`: follow a run, or show it."""

import json

from cli.context import CommandContext, no_preparation, run_command
from cli.options import AsJson, Report, Run
from cli.program import program
from cli.run.follow import follow_and_report
from cli.run.report import print_detail, print_status, report_result
from runtime.approval.shown_report import WAITING, report_name, shown_report
from runtime.registration.registrations import with_registrations_now
from runtime.run.find_run import RunLookup, find_run, query_status, read_result
from runtime.run.job_progress import read_progress
from sluice.errors import ServiceUnavailable
from sluice.presentation.waivers import how_to_waive


def watch(run: Run, as_json: AsJson = False) -> None:
    """Follow a run to its end, and report it."""

    async def command(context: CommandContext, _: None) -> int:
        return await follow_and_report(context, await find_run(context.client, run))

    run_command(command, as_json, no_preparation)


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
        report_result(context, result)


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
    report_result(context, current.result)
    if current.stage == WAITING:
        named = f"{lookup.handle.id} --hash {report_name(shown_report(current.result))}"
        if not how_to_waive(current.result):
            print_detail(context.console, "to approve", f"{program()} approve {named}")
        print_detail(context.console, "to reject", f"{program()} reject {named} --reason")
