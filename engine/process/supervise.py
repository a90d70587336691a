"""Run one job under a guard process: log its output, send its progress as heartbeats, end all its processes.

The guard (`guard.py`) reads a pipe that this process keeps open. When this process dies or closes the pipe, the guard
ends every process of the job, so no Spark process outlives its worker and continues to write.
"""

import asyncio
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TextIO

from engine.job import JobResult
from engine.private_files import open_private
from engine.process.guard import end_session
from engine.process.heartbeat import HEARTBEAT_INTERVAL, Heartbeat
from engine.process.progress import OutputReader

_GUARD = Path(__file__).with_name("guard.py")
_SIGKILL = 9
_END_TIMEOUT = 5.0
"""Maximum time, in seconds, for killed processes to end, and for the rest of their output to arrive."""


class LivenessPipe(Protocol):
    """The worker's end of the pipe that a guard reads."""

    def close(self) -> None:
        """Close the pipe, which makes the guard end its job."""


class Guard(Protocol):
    """The process between the worker and a job, with a part of the interface of `asyncio.subprocess.Process`."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    @property
    def stdin(self) -> LivenessPipe | None: ...
    @property
    def stdout(self) -> asyncio.StreamReader | None: ...
    def kill(self) -> None: ...
    async def wait(self) -> int: ...


class SupervisedProcess:
    """A job that runs under a guard, and ends when this process ends."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    @classmethod
    async def start(
        cls, command: list[str], environment: Mapping[str, str], working_directory: Path | None = None
    ) -> "SupervisedProcess":
        """Start a command under a guard, by default in the worker's own working directory."""
        guard = await asyncio.create_subprocess_exec(
            *(sys.executable, str(_GUARD), *command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=dict(environment),
            cwd=working_directory,
            start_new_session=True,
        )
        return cls(guard)

    @property
    def is_running(self) -> bool:
        """True while the guard, and therefore the job, is running."""
        return self._guard.returncode is None

    async def watch(self, log: Path, heartbeat: Heartbeat) -> JobResult:
        """Wait until the job ends, copy its output into a log, and send its progress every second.

        A cancellation first ends every process of the job, and is then raised.
        """
        assert self._guard.stdout
        reader = OutputReader()
        copying = asyncio.create_task(_copy(self._guard.stdout, reader, log))
        ending = asyncio.create_task(self._guard.wait())  # processes of a killed guard may keep its output open
        try:
            while not (copying.done() or ending.done()):
                heartbeat(reader.progress)
                await asyncio.wait([copying, ending], timeout=HEARTBEAT_INTERVAL, return_when=asyncio.FIRST_COMPLETED)
            code = await ending
        finally:
            ending.cancel()
            await asyncio.shield(self._end_processes(copying))
        return JobResult(code=code, tail=list(reader.tail), log=log)

    async def end(self) -> None:
        """End every process of the job, and drop its output."""
        assert self._guard.stdout
        await asyncio.shield(self._end_processes(asyncio.create_task(_drain(self._guard.stdout))))

    async def _end_processes(self, reading: "asyncio.Task[None]") -> None:
        """Wait for the guard to end all processes of its session; end those that it could not end."""
        assert self._guard.stdin
        self._guard.stdin.close()
        try:
            await asyncio.wait_for(self._guard.wait(), 2 * _END_TIMEOUT)
        except asyncio.TimeoutError:
            self._guard.kill()
            await self._guard.wait()
        await asyncio.to_thread(end_session, self._guard.pid, _SIGKILL, _END_TIMEOUT)
        await asyncio.wait([reading], timeout=_END_TIMEOUT)


async def run_supervised(
    command: list[str],
    environment: Mapping[str, str],
    folder: Path,
    heartbeat: Heartbeat,
    working_directory: Path | None = None,
) -> JobResult:
    """Run a command under a guard to its end, with its log and its scratch space in `folder`."""
    try:
        job = await SupervisedProcess.start(command, environment, working_directory)
        return await job.watch(folder / "spark.log", heartbeat)
    finally:
        await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder / "scratch", ignore_errors=True))


async def _copy(stream: asyncio.StreamReader, reader: OutputReader, log: Path) -> None:
    """Copy output into a log. Threads do this, since a search for secrets in much output takes time."""
    with open_private(log) as file:
        while chunk := await stream.read(65536):
            await asyncio.to_thread(_copy_lines, reader.feed, chunk, file)
        await asyncio.to_thread(_copy_lines, lambda _: reader.close(), b"", file)


def _copy_lines(read: Callable[[bytes], list[str]], chunk: bytes, file: TextIO) -> None:
    file.writelines(f"{line}\n" for line in read(chunk))


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(65536):
        pass
