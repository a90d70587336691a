"""The form that starts an ended run again. It names the run that it was shown with."""

from fastapi.responses import Response

from runtime.run.find_run import RunLookup, read_result
from runtime.run.listed_run import listed_run
from runtime.run.start_again import check_past_zones, options_of
from sluice.errors import InvalidPipeline
from sluice.publishing.start_again import may_start_again, start_again_refusal
from web.form import CONFLICT, answer_form, form_router
from web.page import Page, ThePage
from web.run.starting import start_shown
from web.run.views import known_run, show_run

router = form_router()


@router.post("/runs/{workflow_id}/{run_id}/again")
async def start_again(page: ThePage, workflow_id: str, run_id: str) -> Response:
    """Start a run with the pipeline and the input of an ended one."""
    lookup = await known_run(page, workflow_id, run_id)
    return await answer_form(
        _start(page, lookup, run_id), lambda notice: show_run(page, lookup, CONFLICT, notice), "Nothing was started"
    )


async def _start(page: Page, lookup: RunLookup, run_id: str) -> str:
    """Start the run again. Return the address of the new run.

    Raises:
        InvalidPipeline: it cannot be started again, or was started again already.
    """
    if not lookup.ended:
        raise InvalidPipeline("the run has not ended")
    result = await read_result(page.client, lookup.description)
    if result is None or not may_start_again(result):
        raise InvalidPipeline(f"the run is {result.outcome if result else 'not known'}")
    request = await page.views.request(await listed_run(lookup.description))
    if why := start_again_refusal(request, result):
        raise InvalidPipeline(why)
    assert request is not None  # it is a reason to refuse
    await check_past_zones(page.client, page.installation, request.pipeline)
    options = options_of(request)
    return await start_shown(page, request.pipeline, request.input, options, run_id, folder=request.folder)
