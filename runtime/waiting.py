"""Wait for workflows by the long poll of Temporal. A wait that is cancelled leaves nothing behind."""

import asyncio
from contextlib import suppress
from typing import Any

from temporalio.client import WorkflowFailureError, WorkflowHandle


async def wait_for_end(handle: WorkflowHandle[Any, Any], seconds: float) -> None:
    """Wait until a workflow has ended in any way, at most for a time."""
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(_end(handle), seconds)


async def _end(handle: WorkflowHandle[Any, Any]) -> None:
    with suppress(WorkflowFailureError):
        await handle.result()
