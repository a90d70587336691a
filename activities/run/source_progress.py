"""Run work on source files in its own thread, with heartbeats. Cancelling the activity stops the work."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from engine.process.heartbeat import HEARTBEAT_INTERVAL, Heartbeat, wait_despite_cancellation
from lakehouse.source_files import OnProgress
from sluice.contracts.progress import Progress

T = TypeVar("T")


class _Cancelled(Exception):
    """Raised in the thread when its caller no longer waits."""


async def run_with_progress(
    work: Callable[[OnProgress], T], heartbeat: Heartbeat, doing: str, interval: float = HEARTBEAT_INTERVAL
) -> T:
    """Run work that reports its progress by a callback; return its result.

    Args:
        doing: the progress to report before the first report of the work.
        interval: time between two heartbeats, in seconds.
    """
    latest = doing
    cancelled = False

    def on_progress(text: str) -> None:
        nonlocal latest
        if cancelled:
            raise _Cancelled
        latest = text

    task = asyncio.create_task(asyncio.to_thread(work, on_progress))
    try:
        while not task.done():
            heartbeat(Progress(doing=latest))
            await asyncio.wait([task], timeout=interval)
        return task.result()
    finally:
        cancelled = True
        await wait_despite_cancellation(task)
