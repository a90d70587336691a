"""Limits that the system sets to the process of a query: memory, time, and no core file."""

import os
import resource
import signal
import sys
from pathlib import Path

_STATM = Path("/proc/self/statm")
"""Linux: the first number is the size of this process in pages."""


def limit_this_process(memory: int, seconds: int, threads: int) -> None:
    """Limit this process for the rest of its life; the system refuses it memory, or ends it.

    Args:
        memory: the bytes that it may reserve beside those that it has now. macOS does not hold a process to that.
        seconds: how long it may run, by the clock.
        threads: by how many threads it may use processors for that long.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold rows
    _lower(resource.RLIMIT_CPU, seconds * threads)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    if sys.platform == "linux":
        pages = int(_STATM.read_text().split()[0])
        _lower(resource.RLIMIT_AS, pages * os.sysconf("SC_PAGE_SIZE") + memory)


def _lower(kind: int, limit: int) -> None:
    """Set a limit that cannot be raised again, unless the process has a lower one already."""
    _, hard = resource.getrlimit(kind)
    lower = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(kind, (lower, lower))
