"""Jobs forked off a process that has everything imported: they begin at once, and under a guard as all others."""

import asyncio
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from engine.process.supervise import Supervised
from sluice.errors import ServiceUnavailable

_SERVER = Path(__file__).with_name("fork_server.py")
_PATIENCE = 5.0
_KILLED = 128 + signal.SIGKILL


class PipeLifeLine:
    """The end of a life line that this process holds."""

    def __init__(self, file: int) -> None:
        self._file = file

    def close(self) -> None:
        """Let go."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class ForkedGuard:
    """The guard of a forked job, as far as `asyncio.subprocess.Process` has it too."""

    def __init__(
        self, pid: int, life_line: PipeLifeLine, output: asyncio.StreamReader, end: asyncio.StreamReader
    ) -> None:
        self.pid, self.stdin, self.stdout = pid, life_line, output
        self.returncode: int | None = None
        self._ending = asyncio.create_task(self._end(end))

    async def wait(self) -> int:
        """Return how it ended, once it has."""
        return await asyncio.shield(self._ending)

    def kill(self) -> None:
        """Kill it; its job goes with it."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    async def _end(self, end: asyncio.StreamReader) -> int:
        said = await end.readline()
        self.returncode = int(said) if said else _KILLED
        self.stdin.close()
        return self.returncode


class ForkServer:
    """Starts jobs by forking `engine/process/fork_server.py`, which is started when it is not there."""

    def __init__(self, modules: list[str], log: Path) -> None:
        self._modules, self._log = modules, log
        self._running: _Running | None = None
        self._starting = asyncio.Lock()

    async def ready(self, environment: Mapping[str, str]) -> "_Running":
        """See that the process runs, and return it; its jobs have its environment."""
        async with self._starting:
            if self._running and self._running.process.returncode is None:
                return self._running
            await self.close()
            self._log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            ours, theirs = socket.socketpair()
            with theirs, self._log.open("a") as log:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, str(_SERVER), str(theirs.fileno()), *self._modules),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=dict(environment),
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            self._running = _Running(process, ours)
            return self._running

    async def start(self, order: str, environment: Mapping[str, str]) -> Supervised:
        """Start a job with an order.

        Raises:
            ServiceUnavailable: the process that is to be forked ends instead, twice.
        """
        for _ in range(2):
            running = await self.ready(environment)
            with tempfile.TemporaryFile("w+", dir=self._log.parent) as file:  # it has no name: it holds a token
                file.write(order)
                file.seek(0)
                guard = await _ask(running, file.fileno())
            if guard:
                return Supervised(guard)
            await running.end()
        raise ServiceUnavailable(f"a process for jobs on Spark Connect cannot be started: see {self._log}")

    async def close(self) -> None:
        """Start no more jobs. Those that run are their guards'."""
        running, self._running = self._running, None
        if running:
            await running.end()


@dataclass(frozen=True)
class _Running:
    process: asyncio.subprocess.Process
    control: socket.socket

    async def end(self) -> None:
        self.control.close()
        try:
            await asyncio.wait_for(self.process.wait(), _PATIENCE)
        except asyncio.TimeoutError:
            self.process.kill()
            await self.process.wait()


async def _ask(running: _Running, order: int) -> ForkedGuard | None:
    """Have a job forked off; return nothing if that process ended instead."""
    (life, line), (out, output), (end, ended) = os.pipe(), os.pipe(), os.pipe()
    life_line, outgoing, ending = PipeLifeLine(line), await _reader(out), await _reader(end)
    try:
        socket.send_fds(running.control, [b"!"], [life, output, ended, order])
    except OSError:
        life_line.close()
        return None
    finally:
        for each in (life, output, ended):
            os.close(each)
    try:
        pid = await ending.readline()
    except asyncio.CancelledError:
        life_line.close()
        raise
    if not pid:
        life_line.close()
        return None
    return ForkedGuard(int(pid), life_line, outgoing, ending)


async def _reader(file: int) -> asyncio.StreamReader:
    found = asyncio.StreamReader()
    pipe = os.fdopen(file, "rb", buffering=0)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(found), pipe)
    return found
