"""Compaction of a table's main by another program: the same rows in other files, as a `replace` snapshot."""

from typing import Any

from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _OverwriteFiles


class _Rewrite(_OverwriteFiles):
    """An overwrite whose snapshot states that no row changed. PyIceberg has no such operation."""

    def _summary(self, *arguments: Any, **more: Any) -> Summary:
        summary = super()._summary(*arguments, **more)
        return Summary(operation=Operation.REPLACE, **summary.additional_properties)


def compact(table: Table, rows: Any = None) -> None:
    """Write all rows of a table into one file by PyIceberg. Given `rows`, write those, as a faulty program does."""
    old = [task.file for task in table.scan().plan_files()]
    rows = table.scan().to_arrow() if rows is None else rows
    with table.transaction() as transaction:
        metadata = transaction.table_metadata
        with _Rewrite(Operation.OVERWRITE, transaction, table.io) as rewrite:
            for file in _dataframe_to_data_files(metadata, rows, table.io):
                rewrite.append_data_file(file)
            for file in old:
                rewrite.delete_data_file(file)
