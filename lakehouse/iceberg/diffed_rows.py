"""Count and read the rows of differing data files without DuckDB, where metadata or PyIceberg can."""

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
from pyiceberg.manifest import DataFile

from lakehouse.iceberg.differing_files import DifferingFiles, VersionFiles
from lakehouse.iceberg.file_rows import TooManyRows, read_batches, scan_tasks
from sluice.contracts.table_diffs import PartitionChanges, RowDifferences
from sluice.diff.columns import PARTITION, field_name
from sluice.diff.samples import MAX_LISTED
from sluice.errors import InvalidInput
from sluice.sizes import format_size

_MAX_BYTES = 64 * 2**20
"""Maximum size, in bytes, of the data files of a version that are read into memory."""
_MAX_MEMORY = 256 * 2**20
"""Maximum size of their rows in memory, in bytes."""


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


def read_version(version: VersionFiles, files: Sequence[DataFile]) -> pa.Table:
    """Return the rows of data files, with deletes applied, columns named by field id, and the partition of each row.

    Raises:
        InvalidInput: the rows are too many, or PyIceberg cannot read them.
    """
    if version.state is None:
        return pa.table({PARTITION: pa.array([], pa.string())})
    size = sum(file.file_size_in_bytes for file in files)
    if size > _MAX_BYTES:
        raise InvalidInput(
            f"{format_size(size)} of data files differ, but only {format_size(_MAX_BYTES)} are compared of tables with "
            "nested columns, or with files that DuckDB does not read"
        )
    table = version.state.table
    schema = table.schema()
    names = [*(field_name(each.field_id) for each in schema.fields), PARTITION]
    parts = [pa.Table.from_batches([], schema.as_arrow())]
    try:
        for task in scan_tasks(table, files, with_deletes=version.state.row_deletes):
            partition = version.partitions.get(task.file.file_path)
            for batch in read_batches(table, schema, [task], _MAX_MEMORY - sum(each.nbytes for each in parts)):
                rows = pa.Table.from_batches([batch])
                constant = pa.array([partition] * rows.num_rows, pa.string())
                parts.append(rows.append_column(PARTITION, constant).rename_columns(names))
    except TooManyRows:
        raise InvalidInput(f"the rows that differ need more than {format_size(_MAX_MEMORY)} of memory") from None
    except (ValueError, NotImplementedError) as error:  # files of another format, or deletes by value
        raise InvalidInput(f"only Spark reads the files that differ: {error}") from None
    parts[0] = parts[0].append_column(PARTITION, pa.array([], pa.string())).rename_columns(names)
    return pa.concat_tables(parts, promote_options="permissive")
