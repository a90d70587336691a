"""Running one Spark job to its end: output into a log, signs of life, and an end for every process."""

import asyncio
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from engine.job import JobResult
from engine.process.guard import end_session
from engine.process.progress import OutputReader
from sluice.contracts.progress import Progress

_GUARD = Path(__file__).with_name("guard.py")
_BEAT = 1.0
_SIGKILL = 9
_LAST_WORDS = 5.0
Heartbeat = Callable[[Progress], None]


class LifeLine(Protocol):
    """What a guard watches."""

    def close(self) -> None:
        """Let go: the guard ends its job then."""


class Guard(Protocol):
    """The process between this one and a job, as far as `asyncio.subprocess.Process` has it too."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    @property
    def stdin(self) -> LifeLine | None: ...
    @property
    def stdout(self) -> asyncio.StreamReader | None: ...
    def kill(self) -> None: ...
    async def wait(self) -> int: ...


class Supervised:
    """A job under a guard: it ends when this process does."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    @classmethod
    async def start(cls, command: list[str], environment: Mapping[str, str], where: Path | None = None) -> "Supervised":
        """Start a command in the working directory `where`, by default the worker's own."""
        guard = await asyncio.create_subprocess_exec(
            *(sys.executable, str(_GUARD), *command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=dict(environment),
            cwd=where,
            start_new_session=True,
        )
        return cls(guard)

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._guard.returncode is None

    async def watch(self, log: Path, beat: Heartbeat) -> JobResult:
        """Wait for its end, its output going into a log; call `beat` with its progress every second.

        Cancelled, it ends every process of the command before it lets the cancellation through.
        """
        assert self._guard.stdout
        reader = OutputReader()
        copying = asyncio.create_task(_copy(self._guard.stdout, reader, log))
        ending = asyncio.create_task(self._guard.wait())  # a guard that was killed leaves who holds its output open
        try:
            while not (copying.done() or ending.done()):
                beat(reader.progress)
                await asyncio.wait([copying, ending], timeout=_BEAT, return_when=asyncio.FIRST_COMPLETED)
            code = await ending
        finally:
            ending.cancel()
            await asyncio.shield(self._gone(copying))
        return JobResult(code=code, tail=list(reader.tail), log=log)

    async def end(self) -> None:
        """End every process of the command, whatever it was about to say."""
        assert self._guard.stdout
        await asyncio.shield(self._gone(asyncio.create_task(_drain(self._guard.stdout))))

    async def _gone(self, reading: "asyncio.Task[None]") -> None:
        """Wait for the guard, whose last act is to end the others; end them here if it could not."""
        assert self._guard.stdin
        self._guard.stdin.close()
        try:
            await asyncio.wait_for(self._guard.wait(), _LAST_WORDS + 5)
        except asyncio.TimeoutError:
            self._guard.kill()
            await self._guard.wait()
        await asyncio.to_thread(end_session, self._guard.pid, _SIGKILL, _LAST_WORDS)
        await asyncio.wait([reading], timeout=_LAST_WORDS)


async def run_supervised(
    command: list[str], environment: Mapping[str, str], folder: Path, beat: Heartbeat, where: Path | None = None
) -> JobResult:
    """Run a command under the guard, its log and its scratch space in `folder`."""
    try:
        job = await Supervised.start(command, environment, where)
        return await job.watch(folder / "spark.log", beat)
    finally:
        shutil.rmtree(folder / "scratch", ignore_errors=True)


async def _copy(stream: asyncio.StreamReader, reader: OutputReader, log: Path) -> None:
    with log.open("a", encoding="utf-8", buffering=1) as file:
        while chunk := await stream.read(65536):
            file.writelines(f"{line}\n" for line in reader.feed(chunk))
        file.writelines(f"{line}\n" for line in reader.close())


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(65536):
        pass
