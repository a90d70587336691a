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
        self._reading: asyncio.Task[_T] | None = None
        self._until = 0.0

    async def get(self) -> _T:
        """Return the value. A reader that leaves does not cancel the reading of the others."""
        if self._reading is None or (self._reading.done() and time.monotonic() >= self._until):
            self._reading = asyncio.create_task(self._timed())
        reading = self._reading
        try:
            return await asyncio.shield(reading)
        except Exception:
            if self._reading is reading:
                self._reading = None  # the next reader tries again
            raise

    def forget(self) -> None:
        """Read the value again for the next reader."""
        self._until = 0.0

    async def _timed(self) -> _T:
        value = await self._read()
        self._until = time.monotonic() + self._seconds
        return value
