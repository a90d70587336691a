"""Jobs on a Spark Connect server: a warm one that this worker keeps, or a cluster's.

Each try has a session of its own, whose id follows from run, attempt and try: whoever comes later can end it.
"""

import asyncio
import logging
import os
import shutil
import uuid
from contextlib import suppress
from pathlib import Path

from engine.job import JobResult, SparkJob
from engine.process.fork_client import ForkServer
from engine.process.supervise import Heartbeat, Supervised
from engine.spark.configuration import rehearsal_catalogs, session
from engine.spark.connect_server import ElsewhereServer, WarmServer
from engine.spark.java import find_java
from engine.spark.submit import REHEARSAL, environment
from sluice.contracts.progress import Progress
from sluice.contracts.spark_jobs import ConnectJobSpec
from sluice.errors import SluiceError
from sluice.settings import Settings

_log = logging.getLogger("sluice.engine")
_CLIENT = ["spark_jobs.connect_client", "spark_jobs.ingest", "spark_jobs.scan"]
"""What runs a job, and what the built-in ones import."""
_NAMES = uuid.UUID("3f1c1a52-6f0e-4d54-9a35-6a8f3b1f7c11")
_BEAT = 1.0
_RELEASE = 20
"""How long, in seconds, releasing a session from outside may take."""


def session_id(job: SparkJob, attempt: int, tries: int) -> str:
    """Return the id of the session of one try of a job."""
    digest = uuid.uuid5(_NAMES, f"{job.run_id}/{attempt}/{job.folder.name}/{tries}")
    return str(uuid.UUID(bytes=digest.bytes, version=4))  # the server wants one of version 4


class ConnectEngine:
    """Sessions on a server. Their clients are forked off a process that has everything imported."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        remote = settings.spark_connect_url
        self._server = ElsewhereServer(remote) if remote else WarmServer(settings)
        self._folder = settings.sluice_home.absolute() / "clients" / str(os.getpid())
        self._clients = ForkServer(_CLIENT, self._folder / "clients.log")

    async def run(self, job: SparkJob, beat: Heartbeat) -> JobResult:
        """Run a job in a session of its own, and see that nothing of it goes on afterwards."""
        url = await self._server.url(beat)
        released = job.folder / f"released-{job.tries}"
        order = self._order(job, url, released)
        client = await self._start(order, beat)
        try:
            ended = await client.watch(job.folder / "spark.log", beat)
        finally:
            if not released.exists():
                await asyncio.shield(self._release(order))
        return ended

    async def warm_up(self) -> None:
        """Start the server and let it do what the first job would have to wait for."""
        try:
            await self._clients.ready(self._environment())
            if isinstance(self._server, WarmServer):
                await self._rehearse(await self._server.url(lambda _: None))
        except (OSError, SluiceError) as error:  # a job that needs it says so
            _log.warning("the warm Spark: %s", error)

    async def close(self) -> None:
        """End the clients that wait, and the server if it is this worker's."""
        await self._clients.close()
        await self._server.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _rehearse(self, url: str) -> None:
        folder = self._folder / "rehearsal"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        order = ConnectJobSpec(
            url=url,
            session=str(uuid.uuid4()),
            program=str(REHEARSAL),
            args=[str(folder)],
            bound=rehearsal_catalogs(folder),
            released=str(folder / "released"),
        )
        client = await self._start(order, lambda _: None)
        await client.watch(folder / "spark.log", lambda _: None)
        shutil.rmtree(folder, ignore_errors=True)

    def _order(self, job: SparkJob, url: str, released: Path) -> ConnectJobSpec:
        earlier = [session_id(job, attempt, 1) for attempt in range(1, job.attempt)]
        earlier += [session_id(job, job.attempt, tries) for tries in range(1, job.tries)]
        catalogs = {"spark.sql.defaultCatalog": self._settings.sluice_catalog}
        return ConnectJobSpec(
            url=url,
            session=session_id(job, job.attempt, job.tries),
            earlier=earlier,
            tag=f"sluice-{job.run_id or 'job'}-a{job.attempt}",
            program=str(job.program.absolute()),
            ours=job.ours,
            paths=[] if job.ours else [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each],
            args=job.args,
            conf=dict(job.conf),
            bound=catalogs | session(self._settings, job),
            where=str(job.where or ""),
            released=str(released),
        )

    async def _start(self, order: ConnectJobSpec, beat: Heartbeat) -> Supervised:
        """Start a client with its order, giving signs of life."""
        asked = asyncio.create_task(self._clients.start(order.model_dump_json(), self._environment()))
        try:
            while not asked.done():
                beat(Progress(doing="starting the job"))
                await asyncio.wait([asked], timeout=_BEAT)
        except asyncio.CancelledError:
            asked.cancel()
            with suppress(asyncio.CancelledError, SluiceError):
                await (await asked).end()  # it had come just then
            raise
        return await asked

    def _environment(self) -> dict[str, str]:
        return {**environment(self._settings, find_java()), **self._server.secret()}

    async def _release(self, order: ConnectJobSpec) -> None:
        """End a session whose client could not: it was killed, or its server did not hear it."""
        if not await self._server.answers():
            return  # a server that is gone holds no session
        try:
            client = await self._start(order.model_copy(update={"program": "", "earlier": []}), lambda _: None)
            log = Path(order.released).with_name("release.log")
            await asyncio.wait_for(client.watch(log, lambda _: None), _RELEASE)
        except asyncio.TimeoutError:
            return  # a server that does not answer: the next attempt's session ends this one first
