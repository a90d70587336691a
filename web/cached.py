"""Values that many readers share, so that a page costs its servers the same for one reader and for hundreds."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Cached(Generic[_T]):
    """A value that is read again when it is older than a limit. Readers at the same time share one reading."""

    def __init__(self, read: Callable[[], Awaitable[_T]], seconds: float) -> None:
        self._read, self._seconds = read, seconds
        self._reading: asyncio.Task[tuple[_T, float]] | None = None

    async def get(self) -> _T:
        """Return the value. A reader that leaves does not cancel the reading of the others."""
        if self._reading is None or _is_over(self._reading):
            self._reading = asyncio.create_task(self._timed())
        value, _ = await asyncio.shield(self._reading)
        return value

    def forget(self) -> None:
        """Read the value again for the next reader, even if a reading is under way: it may have begun too early."""
        self._reading = None

    async def _timed(self) -> tuple[_T, float]:
        """Return the value and the time after which it is old."""
        value = await self._read()
        return value, time.monotonic() + self._seconds


def _is_over(reading: "asyncio.Task[tuple[_T, float]]") -> bool:
    """Return True if a reading failed, or if its value is old."""
    if not reading.done():
        return False
    return reading.cancelled() or reading.exception() is not None or time.monotonic() >= reading.result()[1]
