"""The default memory of a Spark driver, used if no setting gives one."""

from pathlib import Path

import psutil

from sluice.setting_groups import SparkSettings

_MIB = 2**20
_LEAST, _MOST = 1024, 8192
"""Limits of the heap size, in MiB. Spark and a small job need the first; a heap above the second is mostly unused."""
_CGROUP = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def driver_memory(settings: SparkSettings, drivers: int) -> str:
    """Return the heap size of one driver. The drivers that may run at once share half of the memory.

    The other half is for a JVM's memory outside of its heap, for Python, the worker, and cached files.

    Args:
        drivers: maximum number of drivers that run at once.
    """
    if settings.spark_driver_memory:
        return settings.spark_driver_memory
    share = machine_memory() // 2 // max(1, drivers) // _MIB
    return f"{min(_MOST, max(_LEAST, share))}m"


def machine_memory() -> int:
    """Return the number of bytes of memory that this process may use: the machine's, or less in a container."""
    limits = [psutil.virtual_memory().total]
    for file in _CGROUP:
        try:
            limits.append(int(file.read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return min(limits)
