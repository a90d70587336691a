"""Events for open pages: a page reads itself again when the runs change."""

import asyncio
from collections.abc import AsyncIterator

from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from temporalio.service import RPCError

from web.page import Page, ThePage

router = APIRouter(include_in_schema=False)
_UNREACHABLE, _UNLISTED = "unreachable", "unlisted"
"""Versions that stand for a Temporal that does not answer, and for a workflow id that the snapshot does not contain."""


@router.get("/events")
async def events(page: ThePage, workflow_id: str = "") -> StreamingResponse:
    """Send an event whenever the runs change.

    Args:
        workflow_id: workflow id of the runs that the page shows; empty if it shows all.
    """
    return StreamingResponse(_changes(page, workflow_id), media_type="text/event-stream")


async def _changes(page: Page, workflow_id: str) -> AsyncIterator[str]:
    version = ""
    yield "retry: 2000\n\n"
    while True:
        try:
            snapshot = await page.board.read()
            present = snapshot.versions.get(workflow_id, _UNLISTED) if workflow_id else snapshot.version
        except RPCError:
            present = _UNREACHABLE
        if present != version:
            yield f"event: runs\ndata: {present}\n\n"
            version = present
        else:
            yield ": no change\n\n"  # shows a closed connection
        await asyncio.sleep(page.timing.events)
