"""The worker's side of the fork server: start the server, request jobs, and watch the guards of these jobs."""

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

from engine.private_files import open_private
from engine.process.supervise import SupervisedProcess
from sluice.errors import ServiceUnavailable

_SERVER = Path(__file__).with_name("fork_server.py")
_CLOSE_TIMEOUT = 5.0
_KILLED = 128 + signal.SIGKILL


class PipeEnd:
    """An end of a pipe that this process keeps open; closing it twice does no harm."""

    def __init__(self, file: int) -> None:
        self._file = file

    def close(self) -> None:
        """Close the file descriptor."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class ForkedGuard:
    """The guard of a forked job, with a part of the interface of `asyncio.subprocess.Process`."""

    def __init__(
        self, pid: int, worker_pipe: PipeEnd, output: asyncio.StreamReader, exit_code: asyncio.StreamReader
    ) -> None:
        self.pid, self.stdin, self.stdout = pid, worker_pipe, output
        self.returncode: int | None = None
        self._ending = asyncio.create_task(self._read_exit_code(exit_code))

    async def wait(self) -> int:
        """Wait until the guard reports the job's exit code or has ended; return the code."""
        return await asyncio.shield(self._ending)

    def kill(self) -> None:
        """Kill the guard; the kernel then kills its job."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    async def _read_exit_code(self, exit_code: asyncio.StreamReader) -> int:
        line = await exit_code.readline()
        self.returncode = int(line) if line else _KILLED
        self.stdin.close()
        return self.returncode


class ForkServer:
    """The worker's handle to the fork server (`fork_server.py`), which starts when needed and forks for each job."""

    def __init__(self, modules: list[str], log: Path) -> None:
        self._modules, self._log = modules, log
        self._running: _ServerProcess | None = None
        self._starting = asyncio.Lock()

    async def ensure_running(self, environment: Mapping[str, str]) -> "_ServerProcess":
        """Start the process if it is not running, and return it. Its jobs inherit its environment."""
        async with self._starting:
            if self._running and self._running.process.returncode is None:
                return self._running
            await self.close()
            self._log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            control, remote_control = socket.socketpair()
            with remote_control, open_private(self._log) as log:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, str(_SERVER), str(remote_control.fileno()), *self._modules),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=dict(environment),
                    pass_fds=[remote_control.fileno()],
                    start_new_session=True,
                )
            self._running = _ServerProcess(process, control)
            return self._running

    async def start_job(self, specification: str, environment: Mapping[str, str]) -> SupervisedProcess:
        """Start a job with its specification.

        Raises:
            ServiceUnavailable: the fork server ended instead, twice.
        """
        for _ in range(2):
            running = await self.ensure_running(environment)
            with tempfile.TemporaryFile("w+", dir=self._log.parent) as file:  # has no name, since it contains a token
                file.write(specification)
                file.seek(0)
                guard = await _fork_job(running, file.fileno())
            if guard:
                return SupervisedProcess(guard)
            await running.end()
        raise ServiceUnavailable(f"the worker cannot start a process: see {self._log}")

    async def close(self) -> None:
        """End the fork server. This does not end running jobs: their guards do."""
        running, self._running = self._running, None
        if running:
            await running.end()


@dataclass(frozen=True)
class _ServerProcess:
    process: asyncio.subprocess.Process
    control: socket.socket

    async def end(self) -> None:
        self.control.close()
        try:
            await asyncio.wait_for(self.process.wait(), _CLOSE_TIMEOUT)
        except asyncio.TimeoutError:
            self.process.kill()
            await self.process.wait()


async def _fork_job(running: _ServerProcess, specification: int) -> ForkedGuard | None:
    """Request a job from the fork server; return the job's guard, or None if the server ended instead."""
    (pipe_to_read, pipe), (output, output_to_write), (exit_code, exit_to_write) = os.pipe(), os.pipe(), os.pipe()
    worker_pipe, output_reader, exit_reader = PipeEnd(pipe), await _open_reader(output), await _open_reader(exit_code)
    try:
        socket.send_fds(running.control, [b"!"], [pipe_to_read, output_to_write, exit_to_write, specification])
    except OSError:
        worker_pipe.close()
        return None
    finally:
        for file in (pipe_to_read, output_to_write, exit_to_write):
            os.close(file)
    try:
        pid = await exit_reader.readline()
    except asyncio.CancelledError:
        worker_pipe.close()
        raise
    if not pid:
        worker_pipe.close()
        return None
    return ForkedGuard(int(pid), worker_pipe, output_reader, exit_reader)


async def _open_reader(file: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    pipe = os.fdopen(file, "rb", buffering=0)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader
