"""Forms that approve, reject, waive and cancel. A decision names the report that the form was shown with."""

from fastapi.responses import JSONResponse, RedirectResponse, Response
from temporalio.service import RPCError, RPCStatusCode

from sluice.approval.signatures import signed_text
from sluice.errors import InvalidPipeline
from web.approval.deciding import decide, prepare_decision
from web.approval.decision_form import TheDecisionForm
from web.form import CONFLICT, form_router, refusal_sentence
from web.page import Page, ThePage
from web.run.views import known_run, show_run

router = form_router()


@router.post("/runs/{workflow_id}/{run_id}/decision")
async def decide_by_form(page: ThePage, workflow_id: str, run_id: str, form: TheDecisionForm) -> Response:
    """Send a decision about the report that the form was shown with."""
    lookup = await known_run(page, workflow_id, run_id)
    try:
        await decide(page, lookup, form.signed(run_id), form.check)
    except InvalidPipeline as error:
        return await show_run(
            page, await known_run(page, workflow_id, run_id), CONFLICT, refusal_sentence(error, "Nothing was decided")
        )
    return RedirectResponse(f"/runs/{workflow_id}/{run_id}#decisions", 303)


@router.post("/runs/{workflow_id}/{run_id}/statement")
async def state_decision(page: ThePage, workflow_id: str, run_id: str, form: TheDecisionForm) -> JSONResponse:
    """Return the text that the browser of a person signs to make the decision. Nothing is decided yet."""
    lookup = await known_run(page, workflow_id, run_id)
    try:
        decision = await prepare_decision(page, lookup, form.stated, form.check)
    except InvalidPipeline as error:
        return JSONResponse({"error": refusal_sentence(error, "Nothing was decided")}, CONFLICT)
    return JSONResponse({"statement": signed_text(decision, run_id).decode()})


@router.post("/runs/{workflow_id}/{run_id}/cancel")
async def cancel(page: ThePage, workflow_id: str, run_id: str) -> Response:
    """Cancel a run that is under way."""
    lookup = await known_run(page, workflow_id, run_id)
    try:
        if lookup.ended:
            return await _ended_before(page, workflow_id, run_id)
        await lookup.handle.cancel(reason=f"cancelled by {page.visitor.name}")
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        return await _ended_before(page, workflow_id, run_id)
    page.board.forget()
    return RedirectResponse(f"/runs/{workflow_id}/{run_id}", 303)


async def _ended_before(page: Page, workflow_id: str, run_id: str) -> Response:
    lookup = await known_run(page, workflow_id, run_id)
    return await show_run(page, lookup, CONFLICT, "Nothing was cancelled: the run has ended.")
