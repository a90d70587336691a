"""Limits of the operating system for the process of a query: memory, time, and no core file."""

import os
import resource
import signal
import sys
from pathlib import Path

_STATM = Path("/proc/self/statm")
"""A file of Linux that begins with the size of this process in pages."""


def limit_this_process(memory: int, seconds: int, threads: int) -> None:
    """Limit this process for the rest of its life. The system refuses memory above the limit, or ends the process.

    Args:
        memory: maximum number of bytes that the process may reserve in addition to those that it has now. macOS does
            not enforce this limit.
        seconds: maximum run time by the clock, in seconds.
        threads: number of threads that may each use a processor for that time.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would contain rows
    _lower(resource.RLIMIT_CPU, seconds * threads)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    if sys.platform == "linux":
        pages = int(_STATM.read_text().split()[0])
        _lower(resource.RLIMIT_AS, pages * os.sysconf("SC_PAGE_SIZE") + memory)


def _lower(kind: int, limit: int) -> None:
    """Set a limit that the process cannot raise again. Keep a lower limit that is already set."""
    _, hard = resource.getrlimit(kind)
    lower = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(kind, (lower, lower))
