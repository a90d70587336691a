"""Read the rows of data files with PyIceberg."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, StaticTable

from lakehouse.iceberg.null_lists import keep_null_lists

keep_null_lists()


class TooManyRows(Exception):
    """Raised when rows need more memory than allowed, although their files are small."""


def read_batches(
    table: StaticTable, schema: Schema, tasks: Iterable[FileScanTask], max_memory: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of data files with the columns of a schema.

    Raises:
        TooManyRows: they need more than `max_memory` bytes.
        ValueError, NotImplementedError: PyIceberg does not read the data files or apply their delete files.
    """
    size = 0
    for batch in ArrowScan(table.metadata, table.io, schema, AlwaysTrue()).to_record_batches(tasks):
        size += batch.nbytes
        if max_memory is not None and size > max_memory:
            raise TooManyRows
        yield batch


def scan_tasks(table: StaticTable, files: Sequence[DataFile], *, with_deletes: bool) -> list[FileScanTask]:
    """Return the tasks that read data files, with their delete files if there are any.

    Raises:
        ValueError, NotImplementedError: PyIceberg does not apply a delete file.
    """
    if not with_deletes:
        return [FileScanTask(file) for file in files]
    wanted = {file.file_path for file in files}
    return [task for task in table.scan().plan_files() if task.file.file_path in wanted]
