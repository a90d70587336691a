"""Heartbeats of a job: its progress, sent to Temporal every second while something is waited for."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from sluice.contracts.progress import Progress

Heartbeat = Callable[[Progress], None]
T = TypeVar("T")
HEARTBEAT_INTERVAL = 1.0
"""In seconds."""


def no_heartbeat(_: Progress) -> None:
    """Send nothing: for work that belongs to no activity."""


async def wait_with_heartbeat(task: "asyncio.Future[Any]", heartbeat: Heartbeat, doing: str) -> None:
    """Wait until a task is done, and send heartbeats meanwhile. Its result or error is the caller's to read."""
    while not task.done():
        heartbeat(Progress(doing=doing))
        await asyncio.wait([task], timeout=HEARTBEAT_INTERVAL)


async def wait_despite_cancellation(task: "asyncio.Future[Any]") -> None:
    """Wait until a task is done, however often the wait is cancelled. Its result or error is dropped."""
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            continue
    if not task.cancelled():
        task.exception()  # read, or asyncio would log that nobody did


async def run_in_thread(function: Callable[[], T], heartbeat: Heartbeat, doing: str) -> T:
    """Run a function in another thread, send heartbeats meanwhile, and return its result."""
    task = asyncio.create_task(asyncio.to_thread(function))
    await wait_with_heartbeat(task, heartbeat, doing)
    return task.result()
