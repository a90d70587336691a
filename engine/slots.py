"""Slots for Spark jobs: how many may run at once on a worker, shared fairly by pipelines."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.process.heartbeat import Heartbeat, wait_with_heartbeat


class SparkSlots:
    """Each slot lets one job run. Slots are given to waiting pipelines round-robin, however many jobs each has."""

    def __init__(self, number: int) -> None:
        self._free = number
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """The jobs that wait, by pipeline; the pipeline that gets the next slot is first."""

    @asynccontextmanager
    async def slot(self, heartbeat: Heartbeat, pipeline: str = "") -> AsyncIterator[None]:
        """Wait for a slot, sending heartbeats, and hold it until the context ends."""
        request = self._request(pipeline)
        try:
            await wait_with_heartbeat(request, heartbeat, "waiting for a Spark slot")
            yield
        finally:
            self._release(request, pipeline)

    def _request(self, pipeline: str) -> "asyncio.Future[None]":
        request: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(pipeline, deque()).append(request)
        self._assign_free_slots()
        return request

    def _release(self, request: "asyncio.Future[None]", pipeline: str) -> None:
        if request.done():
            self._free += 1
        else:
            self._waiting[pipeline].remove(request)
            if not self._waiting[pipeline]:
                del self._waiting[pipeline]
        self._assign_free_slots()

    def _assign_free_slots(self) -> None:
        while self._free and self._waiting:
            pipeline = next(iter(self._waiting))
            queue = self._waiting.pop(pipeline)
            queue.popleft().set_result(None)
            if queue:
                self._waiting[pipeline] = queue  # at the end, behind the other pipelines
            self._free -= 1
