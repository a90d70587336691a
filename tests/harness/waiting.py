"""Waits of tests for an event, long enough for a slow and busy machine.

A limit only ends a hang. No test measures speed by it.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

LIMIT = 360
"""Seconds after which a wait counts as hung."""
_POLL_INTERVAL = 0.05
T = TypeVar("T")


async def until(
    condition: Callable[[], object], otherwise: Callable[[], object] = lambda: "it did not become true"
) -> None:
    """Wait until a condition, possibly a coroutine, is true. After the limit, fail with the result of `otherwise`."""
    deadline = asyncio.get_running_loop().time() + LIMIT
    while True:
        holds = condition()
        if await holds if inspect.isawaitable(holds) else holds:
            return
        if asyncio.get_running_loop().time() > deadline:
            reason = otherwise()
            raise AssertionError(await reason if inspect.isawaitable(reason) else reason)
        await asyncio.sleep(_POLL_INTERVAL)


async def in_time(awaited: Awaitable[T]) -> T:
    """Wait for a result; fail after the limit."""
    return await asyncio.wait_for(awaited, LIMIT)
