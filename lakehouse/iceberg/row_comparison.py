"""What a run did to rows, by comparing those of the files that it removed with those of the files that it added."""

import logging
from collections import Counter
from collections.abc import Hashable, Sequence

from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import ManifestEntry
from pyiceberg.table import FileScanTask, StaticTable

from lakehouse.iceberg.table_state import TableState
from sluice.contracts.write import RowCounts
from sluice.publishing.row_counts import compared_row_counts, merge_on_read_counts

_MAX_VALUES = 200_000
"""How many values may be compared: a fraction of a second."""
_MAX_BYTES = 16 * 2**20
"""How large the files may be together."""
_MAX_MEMORY = 64 * 2**20
"""How large the rows of either side may be in memory."""

log = logging.getLogger(__name__)


def count_changed_rows(state: TableState) -> RowCounts | None:
    """Return what a run did to the rows of a table.

    None if it only added or only removed files, if it compacted, or if it is not known: too many rows to look at, or
    delete files whose meaning depends on what they are read with.
    """
    live, before = state.live, state.before
    if before is None or not live.added or live.removes_nothing or live.has_equality_deletes or state.is_compaction:
        return None
    if not live.removed and not live.removed_deletes:
        return merge_on_read_counts(live.added_rows, live.deleted_rows)
    if state.row_deletes or TableState(before, None).row_deletes or not _is_small(state):
        return None
    try:
        old, new = _rows(before, state, live.removed), _rows(state.table, state, live.added)
    except Exception as error:  # a number in a report must not end a run, whatever the files are
        log.warning("the rows of a table were not compared: %s", type(error).__name__)
        return None
    return None if old is None or new is None else compared_row_counts(old, new)


def _is_small(state: TableState) -> bool:
    files = [entry.data_file for entry in (*state.live.added, *state.live.removed)]
    if any(file.file_format.value != "PARQUET" for file in files):
        return False
    values = sum(file.record_count for file in files) * len(state.types)
    return values <= _MAX_VALUES and sum(file.file_size_in_bytes for file in files) <= _MAX_BYTES


def _rows(table: StaticTable, state: TableState, entries: Sequence[ManifestEntry]) -> Counter[Hashable] | None:
    """Count the rows of data files by their values, all with the columns that the table has after the run.

    None if they are larger in memory than their files let expect.
    """
    scan = ArrowScan(table.metadata, table.io, state.table.schema(), AlwaysTrue())
    rows: Counter[Hashable] = Counter()
    size = 0
    for batch in scan.to_record_batches([FileScanTask(entry.data_file) for entry in entries]):
        size += batch.nbytes
        if size > _MAX_MEMORY:
            return None
        columns = [column.to_pylist() for column in batch.columns]
        rows.update(map(repr, zip(*columns, strict=True)))
    return rows
