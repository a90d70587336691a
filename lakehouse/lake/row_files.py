"""Write the rows of tables to Arrow files, in a process that may end when a data file is hostile (ADR 23).

PyIceberg reads a whole file into memory before the size of its rows is known. So the worker only makes the request, and
the process of a query calls `write_rows`. It gets the name of this module from the worker.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
from pydantic import Field

from lakehouse.catalog import TableVersion
from lakehouse.iceberg.file_rows import TooManyRows, read_batches, scan_tasks
from lakehouse.iceberg.table_state import TableState
from sluice.base_model import WireMessage
from sluice.diff.columns import PARTITION, field_name
from sluice.errors import InvalidInput
from sluice.sizes import format_size

_MAX_BYTES = 256 * 2**20
"""Maximum size, in bytes, of the Arrow files of all tables of a query, or of one version in a diff."""
_ONLY_SPARK = "{} cannot be read without Spark"


class DiffedFiles(WireMessage):
    """The data files of one version that a diff compares. Columns are named by field id."""

    paths: Sequence[str]
    partitions: Mapping[str, str] = Field(default_factory=dict)
    """Partition of each file; empty for a table without partitions."""


class TableRows(WireMessage):
    """The rows of one table to read: all of them, or those of some data files."""

    name: str
    """Name of the table in the query."""
    metadata_location: str = ""
    """Path of the metadata file; empty if the table does not exist, and so has no rows."""
    snapshot_id: int | None = None
    diffed: DiffedFiles | None = None


class RowsRequest(WireMessage):
    """The tables whose rows a query needs."""

    tables: Sequence[TableRows]
    io: Mapping[str, str] = Field(default_factory=dict, repr=False)
    """Iceberg's FileIO properties, which may contain credentials."""


def write_rows(request: str, folder: Path) -> dict[str, list[str]]:
    """Write the rows of the requested tables to Arrow files in a folder; return the paths by table.

    Raises:
        InvalidInput: there are too many rows, or PyIceberg cannot read them.
    """
    wanted = RowsRequest.model_validate_json(request)
    files, left = {}, _MAX_BYTES
    for number, table in enumerate(wanted.tables):
        with _RowFiles(folder / f"read-{number}", _MAX_BYTES if table.diffed else left) as written:
            try:
                for batch in _batches(table, wanted.io):
                    written.write(batch)
            except TooManyRows:
                raise InvalidInput(_too_many(table)) from None
            except (ValueError, NotImplementedError) as error:  # equality deletes, or files of another format
                refusal = "only Spark reads the files that differ" if table.diffed else _ONLY_SPARK.format(table.name)
                raise InvalidInput(f"{refusal}: {error}") from None
            left -= written.size
        files[table.name] = written.paths
    return files


class _RowFiles:
    """The Arrow files of one table, one for each schema: files written by different engines differ in types."""

    def __init__(self, prefix: Path, max_bytes: int) -> None:
        self._prefix, self._max_bytes = prefix, max_bytes
        self._writers: dict[pa.Schema, tuple[pa.NativeFile, pa.RecordBatchFileWriter]] = {}
        self._open = ExitStack()
        self.paths: list[str] = []

    def __enter__(self) -> "_RowFiles":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def size(self) -> int:
        """Size of the written files, in bytes."""
        return sum(int(file.tell()) for file, _ in self._writers.values())

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows.

        Raises:
            TooManyRows: the files would exceed their maximum size.
        """
        if self.size + batch.nbytes > self._max_bytes:
            raise TooManyRows
        if batch.schema not in self._writers:
            path = f"{self._prefix}-{len(self.paths)}.arrow"
            file = self._open.enter_context(pa.OSFile(path, "wb"))
            self._writers[batch.schema] = file, self._open.enter_context(pa.ipc.new_file(file, batch.schema))
            self.paths.append(path)
        self._writers[batch.schema][1].write_batch(batch)


def _batches(wanted: TableRows, io: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table, beginning with an empty batch that has all columns."""
    if not wanted.metadata_location:
        yield pa.RecordBatch.from_pydict({PARTITION: pa.array([], pa.string())})
        return
    state = TableState.load(TableVersion(wanted.metadata_location, wanted.snapshot_id), None, io)
    table, schema = state.table, state.table.schema()
    empty = pa.RecordBatch.from_pylist([], schema.as_arrow())
    if wanted.diffed is None:
        yield empty
        for task in table.scan().plan_files():
            yield from read_batches(table, schema, [task])
        return
    names = [*(field_name(each.field_id) for each in schema.fields), PARTITION]
    yield _with_partition(empty, None, names)
    paths = set(wanted.diffed.paths)
    files = [entry.data_file for entry in state.entries(added_only=False) if entry.data_file.file_path in paths]
    for task in scan_tasks(table, files, with_deletes=state.row_deletes):
        partition = wanted.diffed.partitions.get(task.file.file_path)
        for batch in read_batches(table, schema, [task]):
            yield _with_partition(batch, partition, names)


def _with_partition(batch: pa.RecordBatch, partition: str | None, names: Sequence[str]) -> pa.RecordBatch:
    constant = pa.repeat(pa.scalar(partition, pa.string()), batch.num_rows)
    return pa.RecordBatch.from_arrays([*batch.columns, constant], names=list(names))


def _too_many(table: TableRows) -> str:
    size = format_size(_MAX_BYTES)
    if table.diffed:
        return f"the rows that differ need more than {size} of memory"
    return (
        f"the rows of {table.name} need more than {size} of memory, more than `query` reads of "
        "tables with row-level deletes, nested columns or files in a store other than S3: "
        "docs/reading.md has ways without that limit"
    )
