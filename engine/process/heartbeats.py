"""Heartbeats of an activity while it waits for work in another thread."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from sluice.contracts.progress import Progress

_SECONDS = 1.0
Heartbeat = Callable[[Any], None]
T = TypeVar("T")


async def heartbeat_until_done(work: "asyncio.Task[T]", heartbeat: Heartbeat, doing: str) -> T:
    """Send a heartbeat each second until a task is done, and return its result."""
    while not (await asyncio.wait({work}, timeout=_SECONDS))[0]:
        heartbeat(Progress(doing=doing))
    return work.result()


async def in_thread(function: Callable[[], T], heartbeat: Heartbeat, doing: str) -> T:
    """Run a function in another thread, with a heartbeat each second."""
    return await heartbeat_until_done(asyncio.create_task(asyncio.to_thread(function)), heartbeat, doing)
