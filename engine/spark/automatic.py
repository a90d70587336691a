"""The default engine: Sluice's own jobs share a warm server of this worker; programs get a Spark of their own.

A built-in job runs SQL that `sluice/sql/validation.py` has checked, so it cannot call Java, and nothing of one session
reaches another. A user's program may do anything, and may need what a session cannot do, such as RDDs.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.job import JobResult, SparkJob
from engine.process.heartbeat import Heartbeat
from engine.spark.configuration import has_lineage_listener
from engine.spark.connect import ConnectEngine
from engine.spark.engine import Engine
from sluice.errors import ServiceUnavailable
from sluice.setting_groups import SparkJobSettings

_log = logging.getLogger("sluice.engine")
_IDLE = 600.0
"""Time without a job after which the warm server ends, in seconds. The next job starts it again."""


class AutomaticEngine:
    """The engine that chooses for each job: a session on this worker's warm server, or a `spark-submit` of its own.

    A job gets its own Spark if it is a user's program, if its pipeline sets Spark configuration, or if OpenLineage's
    Spark listener is configured, which names the run for a whole application. If the warm server does not start, its
    jobs run by `spark-submit`, too.
    """

    has_jvm = False

    def __init__(self, settings: SparkJobSettings, warm: ConnectEngine, cold: Engine, idle: float = _IDLE) -> None:
        self._warm, self._cold, self._idle = warm, cold, idle
        self._shares = not has_lineage_listener(settings.spark)
        self._jobs = 0
        self._ending: asyncio.Task[None] | None = None

    async def run(self, job: SparkJob, heartbeat: Heartbeat) -> JobResult:
        """Run a job on the engine that suits it."""
        if not self._shares or not job.built_in or job.conf:
            return await self._cold.run(job, heartbeat)
        async with self._in_use():
            try:
                await self._warm.ensure_server(heartbeat)
            except ServiceUnavailable as error:
                _log.warning("%s; the job runs by spark-submit", error)
                return await self._cold.run(job, heartbeat)
            return await self._warm.run(job, heartbeat)

    async def warm_up(self) -> None:
        """Start the warm server ahead of the first job."""
        if self._shares:
            async with self._in_use():
                await self._warm.warm_up()

    async def close(self) -> None:
        """End the warm server and its clients."""
        if self._ending:
            self._ending.cancel()
        await self._warm.close()
        await self._cold.close()

    @asynccontextmanager
    async def _in_use(self) -> AsyncIterator[None]:
        """Keep the warm server; end it some time after its last job."""
        self._jobs += 1
        if self._ending:
            self._ending.cancel()
        try:
            yield
        finally:
            self._jobs -= 1
            if not self._jobs:
                self._ending = asyncio.create_task(self._end_when_idle())

    async def _end_when_idle(self) -> None:
        await asyncio.sleep(self._idle)
        _log.info("ending the warm Spark: it had no job for %.0f s", self._idle)
        await self._warm.end_server()
