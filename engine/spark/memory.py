"""The default memory of a Spark driver, used if no setting gives one."""

from collections.abc import Sequence
from pathlib import Path

import psutil

from sluice.setting_groups import SparkSettings

_MIB = 2**20
_LEAST, _MOST = 1024, 8192
"""Limits of the heap size, in MiB. Spark and a small job need the first; a heap above the second is mostly unused."""
_CGROUP = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def driver_memory(settings: SparkSettings, drivers: int, machine: int | None = None) -> str:
    """Return the heap size of one driver. The drivers that may run at once share half of the memory.

    The other half is for a JVM's memory outside of its heap, for Python, the worker, and cached files.

    Args:
        drivers: maximum number of drivers that run at once.
        machine: bytes of memory of the machine; None means those of this one.
    """
    if settings.spark_driver_memory:
        return settings.spark_driver_memory
    share = (machine or machine_memory()) // 2 // max(1, drivers) // _MIB
    return f"{min(_MOST, max(_LEAST, share))}m"


def machine_memory(cgroup: Sequence[Path] = _CGROUP) -> int:
    """Return the number of bytes of memory that this process may use: the machine's, or less in a container.

    Args:
        cgroup: files with the limit of the container; they may not exist.
    """
    limits = [psutil.virtual_memory().total]
    for file in cgroup:
        try:
            limits.append(int(file.read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return min(limits)
