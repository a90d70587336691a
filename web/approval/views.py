"""Forms that approve, reject, waive and cancel. A decision names the report that the form was shown with."""

from typing import Annotated

from fastapi import Form
from fastapi.responses import RedirectResponse, Response
from temporalio.service import RPCError, RPCStatusCode

from runtime.approval.shown_report import report_name, shown_report
from sluice.contracts.run import WAITING, RunStatus
from sluice.errors import InvalidPipeline
from web.approval.deciding import StatedDecision, decide
from web.form import CONFLICT, form_router, refusal_sentence
from web.page import Page, ThePage
from web.run.views import known_run, show_run

router = form_router()


@router.post("/runs/{workflow_id}/{run_id}/decision")
async def decide_by_form(
    page: ThePage,
    workflow_id: str,
    run_id: str,
    report: Annotated[str, Form()],
    decision: Annotated[str, Form(pattern="^(approve|reject)$")],
    reason: Annotated[str, Form()] = "",
    waive: Annotated[list[str] | None, Form()] = None,
    until: Annotated[str, Form()] = "",
) -> Response:
    """Send a decision about the report that the form was shown with."""
    lookup = await known_run(page, workflow_id, run_id)
    stated = StatedDecision(decision == "approve", reason=reason, waive=waive or (), until=until)
    try:
        await decide(page, lookup, stated, lambda status: _check_report(status, report))
    except InvalidPipeline as error:
        return await show_run(
            page, await known_run(page, workflow_id, run_id), CONFLICT, refusal_sentence(error, "Nothing was decided")
        )
    return RedirectResponse(f"/runs/{workflow_id}/{run_id}#decisions", 303)


@router.post("/runs/{workflow_id}/{run_id}/cancel")
async def cancel(page: ThePage, workflow_id: str, run_id: str) -> Response:
    """Cancel a run that is under way."""
    lookup = await known_run(page, workflow_id, run_id)
    try:
        if lookup.ended:
            return await _ended_before(page, workflow_id, run_id)
        await lookup.handle.cancel()
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        return await _ended_before(page, workflow_id, run_id)
    page.board.forget()
    return RedirectResponse(f"/runs/{workflow_id}/{run_id}", 303)


async def _ended_before(page: Page, workflow_id: str, run_id: str) -> Response:
    lookup = await known_run(page, workflow_id, run_id)
    return await show_run(page, lookup, CONFLICT, "Nothing was cancelled: the run has ended.")


def _check_report(status: RunStatus, named: str) -> None:
    """Check that the report of a form is the one that waits.

    Raises:
        InvalidPipeline: the run waits with another report, or does not wait.
    """
    if status.stage != WAITING:
        record = status.result.approval
        last = record.decisions[-1] if record and record.decisions else None
        decided = f" It was {'approved' if last.approve else 'rejected'} by {last.by} already." if last else ""
        raise InvalidPipeline(f"the run does not wait for a decision: it is {status.stage}.{decided}")
    waits = report_name(shown_report(status.result))
    if waits != named:
        old, new = named.partition(":")[0][:7], waits.partition(":")[0][:7]
        what = f"{old} is now {new}" if old != new else f"the audit of {new} has other results now"
        raise InvalidPipeline(f"the data changed since this page was opened: {what}. Read it again, then decide")
