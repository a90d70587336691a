"""Count the rows of differing data files by metadata, and choose those whose rows PyIceberg reads."""

from collections import Counter
from collections.abc import Sequence

from pyiceberg.manifest import DataFile

from lakehouse.iceberg.differing_files import DifferingFiles, VersionFiles
from lakehouse.lake.row_files import DiffedFiles, TableRows
from sluice.contracts.table_diffs import PartitionChanges, RowDifferences
from sluice.diff.samples import MAX_LISTED
from sluice.errors import InvalidInput
from sluice.sizes import format_size

_MAX_BYTES = 64 * 2**20
"""Maximum size, in bytes, of the data files of a version that PyIceberg reads."""


def count_alone(differing: DifferingFiles) -> RowDifferences | None:
    """Return the numbers of rows by metadata if only one version has differing files, or none; else None."""
    before, after = differing.before, differing.after
    if before.files and after.files:
        return None
    version, kind = (after, "added") if after.files else (before, "removed")
    rows = version.counted_rows
    if rows is None:
        return None
    by_partition = Counter[str]()
    for file in version.own if version.partitions else ():
        by_partition[version.partitions.get(file.file_path, "")] += file.record_count
    listed = by_partition.most_common(MAX_LISTED)
    partitions = [PartitionChanges.model_validate({"partition": name, kind: count}) for name, count in listed]
    more = len(by_partition) - len(listed)
    return RowDifferences.model_validate({kind: rows, "partitions": partitions, "more_partitions": more})


def sample_files(version: VersionFiles, rows: int) -> list[DataFile]:
    """Return as few files of a version as contain a number of rows."""
    chosen: list[DataFile] = []
    for file in version.own:
        if sum(each.record_count for each in chosen) >= rows:
            break
        chosen.append(file)
    return chosen


def rows_to_read(name: str, version: VersionFiles, files: Sequence[DataFile]) -> TableRows:
    """Return the request for the rows of data files, with deletes applied, and the partition of each row.

    Raises:
        InvalidInput: the files are too large.
    """
    if version.state is None:
        return TableRows(name=name)
    size = sum(file.file_size_in_bytes for file in files)
    if size > _MAX_BYTES:
        raise InvalidInput(
            f"the data files that differ have {format_size(size)}. The limit is {format_size(_MAX_BYTES)} for a table "
            "with nested columns, or with files that DuckDB does not read"
        )
    return TableRows(
        name=name,
        metadata_location=version.state.table.metadata_location,
        snapshot_id=version.snapshot_id,
        diffed=DiffedFiles(paths=[file.file_path for file in files], partitions=version.partitions),
    )
