"""The default engine: Sluice's own jobs share a warm server of this worker; programs get a Spark of their own.

A built-in job runs SQL that `sluice/sql/validation.py` has checked, so it cannot call Java, and nothing of one session
reaches another. A user's program may do anything, and may need what a session cannot do, such as RDDs. Programs whose
pipelines say `engine: connect` share a second warm server, where they reach no built-in job.
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
"""Time without a job after which a warm server ends, in seconds. The next job starts it again."""


class AutomaticEngine:
    """The engine that chooses for each job: a session on a warm server, or a `spark-submit` of its own.

    A job gets its own Spark if it is a user's program that does not ask for a session, if the pipeline of a built-in
    job sets Spark configuration, or if OpenLineage's Spark listener is configured, which names the run for a whole
    application. If a warm server does not start, its jobs run by `spark-submit`, too.
    """

    has_jvm = False

    def __init__(
        self,
        settings: SparkJobSettings,
        built_in: ConnectEngine,
        programs: ConnectEngine,
        cold: Engine,
        idle: float = _IDLE,
    ) -> None:
        """Create the engine.

        Args:
            built_in: the warm server of built-in jobs.
            programs: the warm server of programs that ask for a session.
            cold: the engine that starts a Spark for each job.
            idle: time without a job after which a warm server ends, in seconds.
        """
        self._built_in, self._programs = _WarmServer(built_in, idle), _WarmServer(programs, idle)
        self._cold = cold
        self._shares = not has_lineage_listener(settings.spark)

    async def run(self, job: SparkJob, heartbeat: Heartbeat) -> JobResult:
        """Run a job on the engine that suits it."""
        server = self._warm_server(job) if self._shares else None
        if server is None:
            return await self._cold.run(job, heartbeat)
        async with server.in_use():
            try:
                await server.engine.ensure_server(heartbeat)
            except ServiceUnavailable as error:
                _log.warning("%s; the job runs by spark-submit", error)
                return await self._cold.run(job, heartbeat)
            return await server.engine.run(job, heartbeat)

    async def warm_up(self) -> None:
        """Start the warm server of built-in jobs ahead of the first job."""
        if self._shares:
            async with self._built_in.in_use():
                await self._built_in.engine.warm_up()

    async def close(self) -> None:
        """End the warm servers and their clients."""
        await self._built_in.close()
        await self._programs.close()
        await self._cold.close()

    def _warm_server(self, job: SparkJob) -> "_WarmServer | None":
        """Return the warm server that a job may share, or None if it gets its own Spark."""
        if job.built_in:
            return None if job.conf else self._built_in
        return self._programs if job.shares_server else None


class _WarmServer:
    """A warm server that ends when it had no job for some time."""

    def __init__(self, engine: ConnectEngine, idle: float) -> None:
        self.engine, self._idle = engine, idle
        self._jobs = 0
        self._ending: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def in_use(self) -> AsyncIterator[None]:
        """Keep the server; end it some time after its last job."""
        self._jobs += 1
        if self._ending:
            self._ending.cancel()
        try:
            yield
        finally:
            self._jobs -= 1
            if not self._jobs:
                self._ending = asyncio.create_task(self._end_when_idle())

    async def close(self) -> None:
        """End the server and its clients."""
        if self._ending:
            self._ending.cancel()
        await self.engine.close()

    async def _end_when_idle(self) -> None:
        await asyncio.sleep(self._idle)
        _log.info("ending a warm Spark: it had no job for %.0f s", self._idle)
        await self.engine.end_server()
