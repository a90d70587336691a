"""Process many files in a few threads, with a progress callback that may stop the work."""

import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
OnProgress = Callable[[str], None]
"""Progress callback, called about every second in the caller's thread. Any error that it raises stops the work."""
_INTERVAL = 1.0
"""Interval between two calls, in seconds."""
_WAITING_FILES = 1000
"""Maximum number of files that wait for a thread, so that a list of 100,000 files is not in memory twice."""


class Stopped(Exception):
    """Raised in the threads when the work was stopped."""


class Counter:
    """Number of finished files and bytes, over all threads."""

    def __init__(self) -> None:
        self.files = self.bytes = 0
        self.stopped = False
        self._lock = threading.Lock()

    def add(self, size: int = 0, files: int = 0) -> None:
        """Count bytes and files as finished.

        Raises:
            Stopped: the work was stopped.
        """
        if self.stopped:
            raise Stopped
        with self._lock:
            self.bytes += size
            self.files += files


def map_in_threads(
    function: Callable[[T, Counter], R],
    items: Iterable[T],
    on_progress: OnProgress | None,
    doing: str,
    interval: float = _INTERVAL,
) -> list[R]:
    """Return the results of a function for all items, in their order. The first error ends the work.

    Args:
        doing: the verb of the progress message, before the number of files.
        interval: time between two reports of the progress, in seconds.
    """
    counter = Counter()
    results: list[Future[R]] = []
    waiting: set[Future[R]] = set()
    reported = time.monotonic()

    def report(force: bool = False) -> None:
        nonlocal reported
        if on_progress and (force or time.monotonic() - reported >= interval):
            reported = time.monotonic()
            on_progress(f"{doing} {counter.files:,} files, {counter.bytes / 1e6:,.0f} MB")

    def wait_for(limit: int) -> None:
        nonlocal waiting
        while len(waiting) > limit:
            done, waiting = wait(waiting, interval, FIRST_EXCEPTION)
            for each in done:
                each.result()
            report()

    with ThreadPoolExecutor(min(8, (os.cpu_count() or 1) + 2), thread_name_prefix="source-files") as pool:
        try:
            for item in items:
                future = pool.submit(_counted, function, item, counter)
                results.append(future)
                waiting.add(future)
                if len(waiting) >= _WAITING_FILES:
                    wait_for(_WAITING_FILES // 2)
            wait_for(0)
        except BaseException:
            counter.stopped = True
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return [each.result() for each in results]


def _counted(function: Callable[[T, Counter], R], item: T, counter: Counter) -> R:
    result = function(item, counter)
    counter.add(files=1)
    return result
