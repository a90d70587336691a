"""The API about starts: start a deployed pipeline once for each key, and read what became of it."""

from typing import Annotated, Any

from fastapi import Depends, HTTPException, Path, Request

from runtime.schedules.requested_starts import find_start, report_start, request_start, wait_for_run
from runtime.waiting import wait_for_end
from sluice.contracts.starting import ReportedStart
from sluice.errors import InvalidPipeline, NotDeployed
from sluice.identifiers import LONGEST_KEY, start_key
from web.api_router import LONGEST, Wait, api_router, errors, while_connected
from web.form import CONFLICT
from web.page import Page, ThePage

router = api_router("starts")
_HEADER = "Idempotency-Key"
_DESCRIBED: dict[str, Any] = {
    "parameters": [
        {
            "name": _HEADER,
            "in": "header",
            "required": True,
            "description": "Name of the start. A request with the same key finds the same start, also after its end.",
            "schema": {"type": "string", "pattern": "^[A-Za-z0-9_.:+-]+$", "minLength": 1, "maxLength": LONGEST_KEY},
        }
    ]
}
"""The header, for the description alone: `_key` verifies it, so that the error names the valid characters."""


def _key(request: Request) -> str:
    """Return the key of a request.

    Raises:
        HTTPException: there is none, or several, or it is not valid.
    """
    given = request.headers.getlist(_HEADER)
    try:
        if len(given) != 1:
            raise InvalidPipeline(f"the request has {len(given)} keys, and needs one")
        return start_key(given[0])
    except InvalidPipeline as error:
        raise HTTPException(400, f"{_HEADER}: {error}") from error


@router.post("/pipelines/{name}/runs", status_code=202, responses=errors(404, 409), openapi_extra=_DESCRIBED)
async def post_start(
    request: Request,
    page: ThePage,
    name: Annotated[str, Path(max_length=LONGEST, description="A pipeline that is deployed with a schedule.")],
    key: Annotated[str, Depends(_key)],
) -> ReportedStart:
    """Start a deployed pipeline now, as the person of the request.

    The answer has the ids of the run, or none if a worker needs longer to begin it. `{{ scheduled_for }}` is the time
    of the first request with the key.
    """
    try:
        start = await request_start(page.client, page.installation, name, key, page.starter().name)
    except NotDeployed as error:
        raise HTTPException(404, str(error)) from error
    except InvalidPipeline as error:
        raise HTTPException(CONFLICT, str(error)) from error
    await while_connected(request, wait_for_run(start, page.installation.sluice_worker_wait))
    page.board.forget()
    report = await _read(page, start.handle.id)
    if report.outcome == "refused":
        raise HTTPException(CONFLICT, f"{report.reason}. Send another {_HEADER} to start it again")
    return report


@router.get("/starts/{id}", responses=errors(404))
async def get_start(
    request: Request, page: ThePage, id: Annotated[str, Path(max_length=LONGEST)], wait: Wait = 0
) -> ReportedStart:
    """Return a start: the ids of its run, and the outcome when the run has ended."""
    start = await find_start(page.client, id)
    if wait and start and not start.ended:
        await while_connected(request, wait_for_end(start.handle, wait))
    return await _read(page, id)


async def _read(page: Page, start_id: str) -> ReportedStart:
    """Return the present report of a start.

    Raises:
        HTTPException: there is no such start.
    """
    start = await find_start(page.client, start_id)
    if start is None:
        raise HTTPException(404, f"There is no start {start_id[:100]}, or Temporal no longer has it.")
    return await report_start(page.client, start)
