"""Group the files of other programs whose times Spark may read as other times."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sluice.contracts.spark_jobs import ForeignTimes, KindOfTimes

_VERSION_OF_SPARK = "org.apache.spark.version"
"""Key in the metadata of the Parquet and ORC files that Spark writes."""


class ColumnsOfTimes(NamedTuple):
    """The columns of a file whose times Spark may read as other times."""

    kind: KindOfTimes
    columns: tuple[tuple[str, str], ...]
    """Names and types."""


NO_TIMES = ColumnsOfTimes("orc", ())


def is_of_spark(metadata: Mapping[bytes, bytes] | None) -> bool:
    """Return True if Spark wrote the file with this metadata."""
    return metadata is not None and _VERSION_OF_SPARK.encode() in metadata


def foreign_times(files: Mapping[str, ColumnsOfTimes]) -> list[ForeignTimes]:
    """Group files by their columns of times. Files without such columns are left out."""
    groups: dict[ColumnsOfTimes, list[str]] = {}
    for path, times in files.items():
        if times.columns:
            groups.setdefault(times, []).append(path)
    return [_group(times, paths) for times, paths in groups.items()]


def _group(times: ColumnsOfTimes, paths: Sequence[str]) -> ForeignTimes:
    return ForeignTimes(kind=times.kind, columns=[name for name, _ in times.columns], files=list(paths))
