"""The commands `approve` and `reject`: decide about a run that waits for approval."""

from typing import Annotated

import typer

from cli.approval.approving import make_decision
from cli.context import CommandContext, run_command
from cli.options import AsJson, By, Run
from runtime.approval.deciding import send_decision
from runtime.run.find_run import find_run_under_way, query_status
from runtime.run.reported_run import read_status
from sluice.approval.waiver_request import NO_WAIVER, WaiverRequest
from sluice.presentation.decisions import NOT_VERIFIED, describe_wait, describe_waivers

Named = Annotated[
    str,
    typer.Option("--hash", help="The report that you saw, as `status` shows it: HASH or HASH:DIGEST.", metavar="HASH"),
]


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


def reject(
    run: Run,
    reason: Annotated[str, typer.Option(help="The reason.")],
    by: By = None,
    named: Named = "",
    as_json: AsJson = False,
) -> None:
    """Reject a run that waits for approval. Without --hash, its report is shown, and you confirm."""
    _decide(run, approve=False, by=by, reason=reason, named=named, as_json=as_json)


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
        lookup = await find_run_under_way(context.client, run, "decide")
        workflow_id = lookup.handle.id
        status = await read_status(lookup)
        run_id = lookup.handle.run_id or ""
        decision = make_decision(
            run_id,
            status,
            approve=approve,
            by=by,
            reason=reason,
            named=named,
            settings=context.settings.approval,
            console=context.console,
            link=context.link(workflow_id, run_id),
            request=request,
        )
        counted = await send_decision(lookup.handle, decision)
        text = f"{'Approved' if approve else 'Rejected'} {workflow_id} as {counted.by}"
        now = await query_status(lookup.handle) if approve else None
        text += f" ({describe_wait(now)})" if now else ""
        text += f", for the audited hash {counted.audited_hash[:12]}{describe_waivers(counted)}."
        if not counted.signature:
            text += f" {NOT_VERIFIED}"
        context.print_result(counted.model_dump(mode="json"), text)
        return 0

    run_command(command, as_json, lambda: request.check(reason))
