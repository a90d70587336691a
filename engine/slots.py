"""So many Spark jobs at a time on a worker, shared fairly by pipelines."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.process.supervise import Heartbeat
from sluice.contracts.progress import Progress

_BEAT = 1.0


class SparkSlots:
    """Each slot is room for one job. Pipelines that wait take turns, however many jobs each has waiting."""

    def __init__(self, number: int) -> None:
        self._free = number
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """The jobs that wait, by pipeline; the pipeline whose turn is next comes first."""

    @asynccontextmanager
    async def slot(self, beat: Heartbeat, pipeline: str = "") -> AsyncIterator[None]:
        """Wait for a slot, giving signs of life, and hold it."""
        mine = self._ask(pipeline)
        try:
            while not mine.done():
                beat(Progress(doing="waiting for a Spark slot"))
                await asyncio.wait([mine], timeout=_BEAT)
            yield
        finally:
            self._give_back(mine, pipeline)

    def _ask(self, pipeline: str) -> "asyncio.Future[None]":
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(pipeline, deque()).append(mine)
        self._hand_out()
        return mine

    def _give_back(self, mine: "asyncio.Future[None]", pipeline: str) -> None:
        if mine.done():
            self._free += 1
        else:
            self._waiting[pipeline].remove(mine)
            if not self._waiting[pipeline]:
                del self._waiting[pipeline]
        self._hand_out()

    def _hand_out(self) -> None:
        while self._free and self._waiting:
            pipeline = next(iter(self._waiting))
            queue = self._waiting.pop(pipeline)
            queue.popleft().set_result(None)
            if queue:
                self._waiting[pipeline] = queue  # at the end: it is the others' turn now
            self._free -= 1
