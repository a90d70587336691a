"""The engine for Spark Connect: each job is a session on a server, with a client process under a guard.

Fencing: each try of a job has a session of its own. Anyone who has the id of a session can use the session, so the id
is derived from run, attempt and try with a key that no job has. The client interrupts and releases its session when it
ends. If the client was killed, the worker does so, and so does the next attempt before it begins. So no server runs the
plan of a dead client.
"""

import asyncio
import logging
import os
import secrets
import shutil
import tempfile
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from engine.job import JobResult, SparkJob
from engine.process.fork_client import ForkServer
from engine.process.heartbeat import Heartbeat, no_heartbeat, run_in_thread, wait_with_heartbeat
from engine.process.supervise import SupervisedProcess
from engine.spark.configuration import session, warm_up_catalogs
from engine.spark.connect_server import ConnectServer, ExternalConnectServer, LocalConnectServer
from engine.spark.java import find_java
from engine.spark.submit import CODE_ROOT, WARM_UP, environment
from sluice.contracts.progress import Progress
from sluice.contracts.spark_jobs import ConnectJobSpec
from sluice.errors import SluiceError, SparkServerCrashed
from sluice.setting_groups import SparkJobSettings

_log = logging.getLogger("sluice.engine")
_CLIENT_MODULES = ["spark_jobs.connect_client", "spark_jobs.ingest", "spark_jobs.scan"]
"""The module that runs a job, and the modules of the built-in jobs."""
_KEY_BYTES = 16
_STOPPED = (
    *("Cannot call methods on a stopped SparkContext", "SparkContext was shut down"),
    *("SparkContext has been shutdown", "SparkContext has been shut down"),
)
"""Error texts that jobs get from a server that is ending: Java ends Spark first, and the process a moment later."""
_POLL_INTERVAL = 0.2
_RELEASE_TIMEOUT = 20
"""Maximum time, in seconds, that the worker tries to release a session whose client was killed."""


def session_id(job: SparkJob, attempt: int, try_number: int, namespace: uuid.UUID) -> str:
    """Return the session id of one try of a job, derived from run, attempt, job, try and the namespace.

    The namespace is the key: without it, the id cannot be derived.
    """
    digest = uuid.uuid5(namespace, f"{job.run_id}/{attempt}/{job.folder.name}/{try_number}")
    return str(uuid.UUID(bytes=digest.bytes, version=4))  # the server accepts version 4 only


def read_session_key(file: Path) -> bytes:
    """Return the key of session ids on a server that outlives this worker; create the key if there is none."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError), tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as new:
        new.write(secrets.token_bytes(_KEY_BYTES))
        new.flush()
        try:
            os.link(new.name, file)  # creates the file with its content at once: several workers may start together
        finally:
            Path(new.name).unlink()
    return file.read_bytes()


async def server_has_ended(
    server: ConnectServer, url: str, tail: list[str], heartbeat: Heartbeat, patience: float = 30.0
) -> bool:
    """Return True if the server of a failed job has ended. Wait for a server that has already stopped its Spark.

    Args:
        tail: the last lines of the job's output.
        patience: maximum time that a server has to end after it stopped its Spark, in seconds.
    """
    deadline = time.monotonic() + (patience if any(text in line for text in _STOPPED for line in tail) else 0)
    while not await server.has_ended(url):
        if time.monotonic() >= deadline:
            return False
        heartbeat(Progress(doing="waiting for the Spark Connect server to end"))
        await asyncio.sleep(_POLL_INTERVAL)
    return True


class ConnectEngine:
    """The engine that runs jobs in sessions on a Spark Connect server, with forked clients (ADR 17)."""

    has_jvm = False

    def __init__(
        self,
        settings: SparkJobSettings,
        unreachable: Mapping[str, str],
        *,
        name: str = "",
        runs_built_in: bool = True,
    ) -> None:
        """Create the engine.

        Args:
            unreachable: the configuration of a catalog that cannot be reached, for the warm-up job.
            name: the name of this engine among those of the worker, for its folder.
            runs_built_in: False if it runs only users' programs, which keep the time zone of the machine.
        """
        self._settings, self._unreachable, self._runs_built_in = settings, unreachable, runs_built_in
        url = settings.spark.spark_connect_url
        self._server: ConnectServer = (
            ExternalConnectServer(url) if url else LocalConnectServer(settings, runs_built_in=runs_built_in)
        )
        # The key keeps jobs from deriving the ids of each other's sessions. If the server outlives its workers, the key
        # is in a file, so that each worker can end the sessions of a dead worker.
        keys = settings.storage.sluice_home.absolute() / "session.key"
        self._namespace = uuid.uuid4() if self._server.is_own else uuid.UUID(bytes=read_session_key(keys))
        self._folder = settings.storage.sluice_home.absolute() / "clients" / f"{os.getpid()}{name}"
        self._clients = ForkServer(_CLIENT_MODULES, self._folder / "clients.log")
        self._first_job = asyncio.Event()

    async def run(self, job: SparkJob, heartbeat: Heartbeat) -> JobResult:
        """Run a job in a session of its own, and always release the session."""
        url = await self.ensure_server(heartbeat)
        released = job.folder / f"released-{job.try_number}"
        prepare = partial(self._specification, job, url, released)
        specification = await run_in_thread(prepare, heartbeat, "starting the job")
        client = await self._start_client(specification, heartbeat)
        try:
            result = await client.watch(job.folder / "spark.log", heartbeat)
        finally:
            if not released.exists():
                await asyncio.shield(self._release_session(specification))
        if result.code != 0 and await server_has_ended(self._server, url, result.tail, heartbeat):
            last = result.tail[-1].strip()[:300] if result.tail else f"exit code {result.code}"
            raise SparkServerCrashed(
                f"the Spark Connect server ended, and with it this job and all others there: {last}"
            )
        return result

    async def ensure_server(self, heartbeat: Heartbeat) -> str:
        """Return the address of the server for a job; start the worker's own server if it is not running.

        Raises:
            ServiceUnavailable: the server cannot be reached in time.
        """
        self._first_job.set()
        return await self._server.ensure_running(heartbeat)

    async def end_server(self) -> None:
        """End the server if this worker started it. The next job starts it again."""
        await self._server.close()

    async def warm_up(self) -> None:
        """Start the fork server and this worker's own server, and run a job that loads Spark's classes in advance.

        The first real job stops the warm-up job: the two would compete for the processor.
        """
        try:
            await self._clients.ensure_running(await asyncio.to_thread(self._environment))
            if self._server.is_own:
                url = await self._server.ensure_running(no_heartbeat)
                if not self._first_job.is_set():
                    await self._run_warm_up_job(url)
        except (OSError, SluiceError) as error:  # the first job that needs the server fails with the same error
            _log.warning("warming up Spark Connect failed: %s", error)

    async def close(self) -> None:
        """End the fork server, and the Spark Connect server if this worker started it."""
        await self._clients.close()
        await self._server.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _run_warm_up_job(self, url: str) -> None:
        folder = self._folder / "warm-up"
        await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        specification = ConnectJobSpec(
            url=url,
            session=str(uuid.uuid4()),
            program=str(WARM_UP),
            args=[str(folder)],
            session_conf=warm_up_catalogs(folder, self._unreachable),
            released_file=str(folder / "released"),
        )
        client = await self._start_client(specification, no_heartbeat)
        watching = asyncio.create_task(client.watch(folder / "spark.log", no_heartbeat))
        first_job = asyncio.create_task(self._first_job.wait())
        try:
            await asyncio.wait([watching, first_job], return_when=asyncio.FIRST_COMPLETED)
        finally:
            first_job.cancel()
            watching.cancel()
            await asyncio.wait([watching])
        if not watching.cancelled():
            watching.result()
        if not Path(specification.released_file).exists():
            await self._release_session(specification)
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def _specification(self, job: SparkJob, url: str, released: Path) -> ConnectJobSpec:
        namespace = self._namespace
        earlier = [session_id(job, attempt, 1, namespace) for attempt in range(1, job.attempt)]
        earlier += [session_id(job, job.attempt, number, namespace) for number in range(1, job.try_number)]
        catalogs = {"spark.sql.defaultCatalog": self._settings.catalog_name}
        inherited_paths = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
        return ConnectJobSpec(
            url=url,
            session=session_id(job, job.attempt, job.try_number, namespace),
            earlier_sessions=earlier,
            tag=f"sluice-{job.run_id or 'job'}-a{job.attempt}",
            program=str(job.program.absolute()),
            built_in=job.built_in,
            environment=dict(job.environment),
            shared_views=self._server.shared_views,
            python_paths=[] if job.built_in else inherited_paths,
            args=job.args,
            conf=dict(job.conf),
            session_conf=catalogs | session(self._settings, job),
            working_directory=str(job.working_directory or ""),
            released_file=str(released),
        )

    async def _start_client(self, specification: ConnectJobSpec, heartbeat: Heartbeat) -> SupervisedProcess:
        """Start a client with a specification, and send heartbeats meanwhile."""
        variables = await run_in_thread(self._environment, heartbeat, "starting the job")
        starting = asyncio.create_task(self._clients.start_job(specification.model_dump_json(), variables))
        try:
            await wait_with_heartbeat(starting, heartbeat, "starting the job")
        except asyncio.CancelledError:
            starting.cancel()
            with suppress(asyncio.CancelledError, SluiceError):
                await (await starting).end()  # the client had just started
            raise
        return await starting

    def _environment(self) -> dict[str, str]:
        variables = environment(self._settings, find_java(), built_in=self._runs_built_in)
        return {**variables, "PYTHONPATH": str(CODE_ROOT), **self._server.client_variables()}

    async def _release_session(self, specification: ConnectJobSpec) -> None:
        """Release a session for a client that was killed, or that got no answer from the server."""
        if not await self._server.is_reachable():
            return  # a server that has ended has no sessions
        try:
            release = specification.model_copy(update={"program": "", "earlier_sessions": []})
            client = await self._start_client(release, no_heartbeat)
            log = Path(specification.released_file).with_name("release.log")
            await asyncio.wait_for(client.watch(log, no_heartbeat), _RELEASE_TIMEOUT)
        except asyncio.TimeoutError:
            return  # the server does not answer: the next attempt first ends this session
