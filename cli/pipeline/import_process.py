"""Run work in a separate process with limits of memory and time: macros in files of others may never end."""

import os
import resource
import signal
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from sluice.errors import InvalidPipeline

MAX_SECONDS = 300
MAX_MEMORY = 2 * 2**30
_MEMORY_OF_PROCESS = Path("/proc/self/statm")

Result = TypeVar("Result")


def run_limited(
    work: Callable[..., Result], *arguments: Any, max_seconds: float = MAX_SECONDS, max_memory: int = MAX_MEMORY
) -> Result:
    """Run work in a forked process, and return its result.

    Args:
        max_seconds: maximum duration of the work.
        max_memory: maximum number of bytes of memory that the work uses in addition to the memory of this process.

    Raises:
        InvalidPipeline: the work raised it, or exceeded the limit of memory or time.
    """
    receiver, sender = get_context("fork").Pipe(duplex=False)
    process = get_context("fork").Process(target=_work, args=(sender, max_memory, work, arguments), daemon=True)
    process.start()
    sender.close()
    try:
        if not receiver.poll(max_seconds):
            raise InvalidPipeline(
                f"the import was stopped after {max_seconds:g} seconds: a macro may have no end; import fewer files"
            )
        result, error = receiver.recv()
    except EOFError as ended:
        raise InvalidPipeline("the process of the import ended without a result") from ended
    finally:
        process.kill()
        process.join()
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]  # what a pipe carries has no type


def _work(sender: Connection, max_memory: int, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends it
    if _MEMORY_OF_PROCESS.exists():
        used = int(_MEMORY_OF_PROCESS.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + max_memory, used + max_memory))
    try:
        sender.send((work(*arguments), None))
    except MemoryError:
        sender.send((None, InvalidPipeline(f"the import needs more than {max_memory // 2**20:,} MiB of memory")))
    except Exception as error:
        sender.send((None, error))
