"""Events for open pages: a page reads itself again when the runs change."""

import asyncio
from collections.abc import AsyncIterator

from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from temporalio.service import RPCError

from web.page import Page, ThePage

router = APIRouter(include_in_schema=False)
_UNREACHABLE = "unreachable"


@router.get("/events")
async def events(page: ThePage) -> StreamingResponse:
    """Send an event whenever the runs change."""
    return StreamingResponse(_changes(page), media_type="text/event-stream")


async def _changes(page: Page) -> AsyncIterator[str]:
    version = ""
    yield "retry: 2000\n\n"
    while True:
        try:
            present = (await page.board.read()).version
        except RPCError:
            present = _UNREACHABLE
        if present != version:
            yield f"event: runs\ndata: {present}\n\n"
            version = present
        else:
            yield ": no change\n\n"  # shows a closed connection
        await asyncio.sleep(page.timing.events)
