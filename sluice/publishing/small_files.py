"""Hint about partitions that split a write into many small files."""

from collections.abc import Sequence
from dataclasses import dataclass

from sluice.sizes import format_size

_MANY_FILES = 20
_SMALL_FILE = 1024 * 1024
"""Size of a small file, in bytes. Opening a file costs a reader about as much as reading this many bytes."""
_COARSER = {"hour": "day", "day": "month", "month": "year"}
_TIMES = ("date", "timestamp")


@dataclass(frozen=True)
class Partition:
    """One partition field of a table: a column, its type in Iceberg's words, and the transform of its values."""

    column: str
    type: str
    transform: str
    """Transform as Iceberg writes it: `identity`, `day`, `bucket[16]`."""


def describe_small_files(partitions: Sequence[Partition], written: int, files: int, size: int) -> str:
    """Return a hint if partitions split a write into many small files; empty if they do not.

    Args:
        partitions: the partition fields of the table.
        written: number of partitions to which the files belong.
        files: number of data files that the run added.
        size: total size of these files, in bytes.
    """
    if not partitions or files < _MANY_FILES or size / files >= _SMALL_FILE:
        return ""
    if files >= 2 * written:  # something other than the partitions splits the write
        return ""
    return f"{files:,} files of {format_size(size / files)}: {_advice(partitions)}"


def _advice(partitions: Sequence[Partition]) -> str:
    for partition in partitions:
        column, transform = partition.column, partition.transform
        if transform in _COARSER:
            return f"consider {_COARSER[transform]}({column})"
        if transform == "identity" and partition.type.startswith(_TIMES):
            return f"consider month({column})"
    for partition in partitions:
        if partition.transform == "identity":
            return f"consider bucket(8, {partition.column}), or no partition by {partition.column}"
        if partition.transform.startswith("bucket["):
            return f"consider fewer buckets of {partition.column}"
    return "consider fewer partitions"
