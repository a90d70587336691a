"""Heartbeats of a job: its progress, sent to Temporal every second while something is waited for."""

import asyncio
from collections.abc import Callable
from typing import Any

from sluice.contracts.progress import Progress

Heartbeat = Callable[[Progress], None]
HEARTBEAT_INTERVAL = 1.0
"""In seconds."""


def no_heartbeat(_: Progress) -> None:
    """Send nothing: for work that belongs to no activity."""


async def wait_with_heartbeat(task: "asyncio.Future[Any]", heartbeat: Heartbeat, doing: str) -> None:
    """Wait until a task is done, and send heartbeats meanwhile. Its result or error is the caller's to read."""
    while not task.done():
        heartbeat(Progress(doing=doing))
        await asyncio.wait([task], timeout=HEARTBEAT_INTERVAL)
