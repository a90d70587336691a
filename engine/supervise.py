"""Running one Spark job to its end: output into a log, signs of life, and an end for every process."""

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from engine.guard import end_session
from engine.job import Ended
from engine.progress import OutputReader, Progress

_GUARD = Path(__file__).with_name("guard.py")
_BEAT = 1.0
_SIGKILL = 9
_LAST_WORDS = 5.0


class SparkSlots:
    """So many Spark jobs at a time on this worker: each is a JVM with a memory of its own."""

    def __init__(self, number: int) -> None:
        self._free = asyncio.Semaphore(number)

    @asynccontextmanager
    async def slot(self, beat: Callable[[Progress], None]) -> AsyncIterator[None]:
        """Wait for a slot, giving signs of life, and hold it."""
        taking = asyncio.ensure_future(self._free.acquire())
        try:
            while not taking.done():
                beat(Progress(doing="waiting for a Spark slot"))
                await asyncio.wait([taking], timeout=_BEAT)
            yield
        finally:
            if not taking.cancel():
                self._free.release()


async def run_supervised(
    command: list[str],
    environment: dict[str, str],
    folder: Path,
    beat: Callable[[Progress], None],
    where: Path | None = None,
) -> Ended:
    """Run a command under the guard, its log in `folder`; call `beat` with its progress every second.

    It runs in the working directory `where`, by default the worker's own.

    Cancelled, it ends every process of the job before it lets the cancellation through.
    """
    log = folder / "spark.log"
    guard = await asyncio.create_subprocess_exec(
        *(sys.executable, str(_GUARD), *command),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=environment,
        cwd=where,
        start_new_session=True,
    )
    assert guard.stdin and guard.stdout
    reader = OutputReader()
    copying = asyncio.create_task(_copy(guard.stdout, reader, log))
    try:
        while not copying.done():
            beat(reader.progress)
            await asyncio.wait([copying], timeout=_BEAT)
        code = await guard.wait()
    finally:
        guard.stdin.close()
        await asyncio.shield(_gone(guard, copying))
        shutil.rmtree(folder / "scratch", ignore_errors=True)
    return Ended(code=code, tail=list(reader.tail), log=log)


async def _copy(stream: asyncio.StreamReader, reader: OutputReader, log: Path) -> None:
    with log.open("a", encoding="utf-8", buffering=1) as file:
        while chunk := await stream.read(65536):
            file.writelines(f"{line}\n" for line in reader.feed(chunk))
        file.writelines(f"{line}\n" for line in reader.close())


async def _gone(guard: asyncio.subprocess.Process, copying: "asyncio.Task[None]") -> None:
    """Wait for the guard, whose last act is to end the others; end them here if it could not."""
    try:
        await asyncio.wait_for(guard.wait(), _LAST_WORDS + 5)
    except asyncio.TimeoutError:
        guard.kill()
        await guard.wait()
    await asyncio.to_thread(end_session, guard.pid, _SIGKILL, _LAST_WORDS)
    await asyncio.wait([copying], timeout=_LAST_WORDS)
