"""The server behind Spark Connect: one elsewhere, or one that this worker starts, watches and ends."""

import asyncio
import secrets
import shutil
import socket
import time
from urllib.parse import urlsplit

from engine.process.supervise import Heartbeat, Supervised
from engine.spark.class_data_archive import archive_option, find_archive
from engine.spark.configuration import application, hadoop_s3, write_properties
from engine.spark.java import find_java
from engine.spark.submit import environment, submit
from sluice.contracts.progress import Progress
from sluice.errors import ServiceUnavailable
from sluice.settings import Settings

_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
_USUAL = 15002
_LOOK, _BEAT = 0.1, 1.0
_START = 180.0
_ELSEWHERE = 60.0
"""How long, in seconds, a server elsewhere may be away before an attempt is given up."""


class ElsewhereServer:
    """A Spark Connect server that somebody else runs."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def url(self, beat: Heartbeat) -> str:
        """Return where the server answers, waiting while it does not.

        Raises:
            ServiceUnavailable: it does not answer for a minute.
        """
        deadline = time.monotonic() + _ELSEWHERE
        while not await self.answers():
            if time.monotonic() > deadline:
                where = urlsplit(self._url).netloc
                raise ServiceUnavailable(f"Spark Connect at {where} does not answer: is it running?")
            beat(Progress(doing="waiting for Spark Connect"))
            await asyncio.sleep(_BEAT)
        return self._url

    async def answers(self) -> bool:
        """Return whether it does."""
        parts = urlsplit(self._url)
        return await _answers(parts.hostname or "", parts.port or _USUAL)

    def secret(self) -> dict[str, str]:
        """Return nothing: what the server asks for is in its address, or in the worker's environment."""
        return {}

    async def close(self) -> None:
        """Leave that to whoever runs it."""


class WarmServer:
    """A Spark Connect server of this worker's own, on a port of this machine, for those who know a token."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._token = secrets.token_urlsafe(24)
        self._starting = asyncio.Lock()
        self._process: Supervised | None = None
        self._watching: asyncio.Task[object] | None = None
        self._port = 0
        self._folder = settings.sluice_home.absolute() / "warm"

    async def url(self, beat: Heartbeat) -> str:
        """Return where the server answers; start it if it does not run, whether it never did or died.

        Raises:
            ServiceUnavailable: it does not come up.
        """
        asked = asyncio.create_task(self._running())
        try:
            while not asked.done():
                beat(Progress(doing="starting the warm Spark"))
                await asyncio.wait([asked], timeout=_BEAT)
        finally:
            asked.cancel()
        await asked
        return f"sc://localhost:{self._port}"

    async def answers(self) -> bool:
        """Return whether it does."""
        alive = self._process is not None and self._process.alive
        return alive and await _answers("127.0.0.1", self._port)

    def secret(self) -> dict[str, str]:
        """Return the variable by which a client knows the token."""
        return {_TOKEN: self._token}

    async def close(self) -> None:
        """End it."""
        process, watching = self._process, self._watching
        self._process = self._watching = None
        if watching:
            watching.cancel()
            await asyncio.wait([watching])
        elif process:
            await process.end()

    async def _running(self) -> None:
        async with self._starting:
            if await self.answers():
                return
            await self.close()
            await self._start()

    async def _start(self) -> None:
        java = find_java()
        archive = find_archive(self._settings, java)
        self._port = _free_port()
        folder = self._folder / str(self._port)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True)
        properties = {
            **application(self._settings, folder),
            **hadoop_s3(self._settings),
            "spark.app.name": "sluice warm",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.connect.authenticate.token": self._token,
        }
        words = submit(write_properties(folder / "spark.properties", properties), "--class", _SERVER, "spark-internal")
        variables = environment(self._settings, java, archive_option(archive) if archive else "")
        log = folder / "spark.log"
        self._process = await Supervised.start(words, variables)
        self._watching = asyncio.create_task(self._process.watch(log, lambda _: None))
        deadline = time.monotonic() + _START
        while not await self.answers():
            if not self._process.alive or time.monotonic() > deadline:
                raise ServiceUnavailable(f"the warm Spark did not come up: see {log}")
            await asyncio.sleep(_LOOK)


async def _answers(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), 2)
    except (OSError, asyncio.TimeoutError):
        return False
    writer.close()
    return True


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
