"""Send a job's progress to Temporal as heartbeats, every second while the worker waits."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from sluice.contracts.progress import Progress

Heartbeat = Callable[[Progress], None]
T = TypeVar("T")
HEARTBEAT_INTERVAL = 1.0
"""Time between heartbeats, in seconds."""


def no_heartbeat(_: Progress) -> None:
    """Send nothing, for work outside of activities."""


async def wait_with_heartbeat(task: "asyncio.Future[Any]", heartbeat: Heartbeat, doing: str) -> None:
    """Send heartbeats until a task is done. The caller reads the task's result or error."""
    while not task.done():
        heartbeat(Progress(doing=doing))
        await asyncio.wait([task], timeout=HEARTBEAT_INTERVAL)


async def wait_despite_cancellation(task: "asyncio.Future[Any]") -> None:
    """Wait until a task is done, even if the wait is cancelled repeatedly; drop the task's result or error."""
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            continue
    if not task.cancelled():
        task.exception()  # asyncio logs an error that nobody reads


async def run_in_thread(function: Callable[[], T], heartbeat: Heartbeat, doing: str) -> T:
    """Run a function in another thread, send heartbeats meanwhile, and return its result."""
    task = asyncio.create_task(asyncio.to_thread(function))
    await wait_with_heartbeat(task, heartbeat, doing)
    return task.result()
