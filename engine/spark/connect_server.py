"""The Spark Connect server of jobs: an external one, or one that this worker starts, watches and ends."""

import asyncio
import secrets
import shutil
import socket
import time
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from engine.process.heartbeat import HEARTBEAT_INTERVAL, Heartbeat, no_heartbeat, wait_with_heartbeat
from engine.process.supervise import SupervisedProcess
from engine.spark.class_data_archive import archive_option, find_archive
from engine.spark.configuration import IN_UTC, application, hadoop_s3, write_properties
from engine.spark.java import find_java
from engine.spark.submit import environment, submit
from sluice.contracts.progress import Progress
from sluice.errors import ServiceUnavailable
from sluice.setting_groups import SparkJobSettings

_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
_DEFAULT_PORT = 15002
_RETURN_MEMORY = "-XX:G1PeriodicGCInterval=60000"
"""JVM option with which an idle server returns unused memory to the system, once a minute (JEP 346)."""
_POLL_INTERVAL = 0.1
_START_TIMEOUT = 180.0
_EXTERNAL_TIMEOUT = 60.0
"""Maximum time, in seconds, that an external server may be unreachable before an attempt fails."""


class ConnectServer(Protocol):
    """A Spark Connect server, as `ConnectEngine` uses it."""

    @property
    def is_own(self) -> bool:
        """True if this worker started the server, and therefore warms it up."""

    @property
    def shared_views(self) -> str:
        """Name of the database of temporary views that all sessions share, or empty if this worker may not empty it."""

    async def ensure_running(self, heartbeat: Heartbeat) -> str:
        """Return the address of the server once it can be reached.

        Raises:
            ServiceUnavailable: the server cannot be reached in time.
        """

    async def is_reachable(self) -> bool:
        """Return True if the server accepts connections."""

    async def has_ended(self, url: str) -> bool:
        """Return True if the server that was at an address has ended, or cannot be reached."""

    def client_variables(self) -> dict[str, str]:
        """Return the environment variables that a client needs to authenticate."""

    async def close(self) -> None:
        """End the server if this worker started it."""


class ExternalConnectServer:
    """A Spark Connect server that runs independently of this worker."""

    is_own = False
    shared_views = ""

    def __init__(self, url: str) -> None:
        self._url = url

    async def ensure_running(self, heartbeat: Heartbeat) -> str:
        """Return the address of the server; wait up to a minute while it cannot be reached.

        Raises:
            ServiceUnavailable: the server cannot be reached for a minute.
        """
        deadline = time.monotonic() + _EXTERNAL_TIMEOUT
        while not await self.is_reachable():
            if time.monotonic() > deadline:
                address = urlsplit(self._url).netloc
                raise ServiceUnavailable(f"Spark Connect at {address} does not answer: is it running?")
            heartbeat(Progress(doing="waiting for Spark Connect"))
            await asyncio.sleep(HEARTBEAT_INTERVAL)
        return self._url

    async def is_reachable(self) -> bool:
        """Return True if the server accepts connections."""
        parts = urlsplit(self._url)
        return await _accepts_connections(parts.hostname or "", parts.port or _DEFAULT_PORT)

    async def has_ended(self, url: str) -> bool:
        """Return True if the server cannot be reached. A restart of the server in the meantime goes unnoticed."""
        return not await self.is_reachable()

    def client_variables(self) -> dict[str, str]:
        """Return nothing: the token is in the server's address, or in the worker's environment."""
        return {}

    async def close(self) -> None:
        """Do nothing: this worker did not start the server."""


class LocalConnectServer:
    """A Spark Connect server that this worker starts on a port of this machine. Clients need the server's token."""

    is_own = True

    def __init__(self, settings: SparkJobSettings, *, runs_built_in: bool = True) -> None:
        """Create the server.

        Args:
            runs_built_in: False if only users' programs have sessions on it. They keep the time zone of the machine.
        """
        self._settings, self._runs_built_in = settings, runs_built_in
        self._token = secrets.token_urlsafe(24)
        self.shared_views = f"no_global_temp_{secrets.token_hex(8)}"
        self._starting = asyncio.Lock()
        self._process: SupervisedProcess | None = None
        self._watching: asyncio.Task[object] | None = None
        self._port = 0
        self._folder = settings.storage.sluice_home.absolute() / "warm"

    async def ensure_running(self, heartbeat: Heartbeat) -> str:
        """Return the address of the server; start the server if it is not running.

        Raises:
            ServiceUnavailable: the server does not start.
        """
        starting = asyncio.create_task(self._start_if_needed())
        try:
            await wait_with_heartbeat(starting, heartbeat, "starting the Spark Connect server")
        finally:
            starting.cancel()
        await starting
        return self._url

    @property
    def _url(self) -> str:
        return f"sc://localhost:{self._port}"

    async def is_reachable(self) -> bool:
        """Return True if the server is running and accepts connections."""
        is_running = self._process is not None and self._process.is_running
        return is_running and await _accepts_connections("127.0.0.1", self._port)

    async def has_ended(self, url: str) -> bool:
        """Return True if the server at an address has ended. Each server that this worker starts gets a new port."""
        return url != self._url or self._process is None or not self._process.is_running

    def client_variables(self) -> dict[str, str]:
        """Return the variable that contains the server's token."""
        return {_TOKEN: self._token}

    async def close(self) -> None:
        """End the server."""
        process, watching = self._process, self._watching
        self._process = self._watching = None
        if watching:
            watching.cancel()
            await asyncio.wait([watching])
        elif process:
            await process.end()

    async def _start_if_needed(self) -> None:
        async with self._starting:
            if await self.is_reachable():
                return
            await self.close()
            await self._start()

    async def _start(self) -> None:
        self._port = _free_port()
        folder = self._folder / str(self._port)
        submit_command, variables = await asyncio.to_thread(self._prepare, folder)
        log = folder / "spark.log"
        self._process = await SupervisedProcess.start(submit_command, variables)
        self._watching = asyncio.create_task(self._process.watch(log, no_heartbeat))
        deadline = time.monotonic() + _START_TIMEOUT
        while not await self.is_reachable():
            if not self._process.is_running or time.monotonic() > deadline:
                raise ServiceUnavailable(f"the Spark Connect server of this worker did not start: see {log}")
            await asyncio.sleep(_POLL_INTERVAL)

    def _prepare(self, folder: Path) -> tuple[list[str], dict[str, str]]:
        """Write the configuration of the server; return the server's command and environment."""
        java = find_java()
        archive = find_archive(self._settings.storage, java)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True)
        properties = {
            **application(self._settings, folder),
            **hadoop_s3(self._settings.storage),
            **(IN_UTC if self._runs_built_in else {}),
            "spark.app.name": "sluice connect server",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.connect.authenticate.token": self._token,
            # Sessions of different runs share nothing: neither global views nor the modules of a Python worker.
            "spark.sql.globalTempDatabase": self.shared_views,
            "spark.python.worker.reuse": "false",
        }
        submit_command = submit(
            write_properties(folder / "spark.properties", properties), "--class", _SERVER, "spark-internal"
        )
        options = " ".join(filter(None, [archive_option(archive) if archive else "", _RETURN_MEMORY]))
        variables = environment(self._settings, java, options, built_in=self._runs_built_in)
        return submit_command, variables


async def _accepts_connections(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), 2)
    except (OSError, asyncio.TimeoutError):
        return False
    writer.close()
    return True


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
