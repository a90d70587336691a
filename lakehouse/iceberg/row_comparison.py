"""Count changed rows by comparing the rows of a run's removed files with those of its added files."""

import logging
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from pyiceberg.manifest import ManifestEntry
from pyiceberg.table import StaticTable

from lakehouse.iceberg.file_rows import read_batches, scan_tasks
from lakehouse.iceberg.table_state import TableState
from sluice.contracts.table_changes import RowCounts
from sluice.publishing.row_counts import compared_row_counts, merge_on_read_counts
from sluice.sql.arrow_values import python_values

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ComparisonLimits:
    """Limits of a comparison of rows, which may take a fraction of a second."""

    values: int = 200_000
    """Maximum number of compared values."""
    bytes: int = 16 * 2**20
    """Maximum size of all compared files, in bytes."""
    memory: int = 64 * 2**20
    """Maximum size of the rows of either side in memory, in bytes."""


LIMITS = ComparisonLimits()


def count_changed_rows(state: TableState, limits: ComparisonLimits = LIMITS) -> RowCounts | None:
    """Return how many rows of a table a run inserted, updated and deleted.

    None if the run only added or only removed files, or if it compacted. None too if the counts are unknown: there are
    too many rows to compare, or delete files whose meaning depends on other files.
    """
    live, before = state.live, state.before
    if before is None or not live.added or live.removes_nothing or live.has_equality_deletes or state.is_compaction:
        return None
    if not live.removed and not live.removed_deletes:
        return merge_on_read_counts(live.added_rows, live.deleted_rows)
    if state.row_deletes or TableState(before, None).row_deletes or not _is_small(state, limits):
        return None
    try:
        memory = limits.memory
        old, new = _rows(before, state, live.removed, memory), _rows(state.table, state, live.added, memory)
    except Exception as error:  # a number in a report must not end a run, whatever is wrong with the files
        log.warning("the rows of a table were not compared: %s", type(error).__name__)
        return None
    return compared_row_counts(old, new)


def _is_small(state: TableState, limits: ComparisonLimits) -> bool:
    files = [entry.data_file for entry in (*state.live.added, *state.live.removed)]
    if any(file.file_format.value != "PARQUET" for file in files):
        return False
    values = sum(file.record_count for file in files) * len(state.types)
    return values <= limits.values and sum(file.file_size_in_bytes for file in files) <= limits.bytes


def _rows(table: StaticTable, state: TableState, entries: Sequence[ManifestEntry], memory: int) -> Counter[Hashable]:
    """Count the rows of data files by their values, with the columns that the table has after the run."""
    tasks = scan_tasks(table, [entry.data_file for entry in entries], with_deletes=False)
    rows: Counter[Hashable] = Counter()
    for batch in read_batches(table, state.table.schema(), tasks, memory):
        columns = [python_values(column) for column in batch.columns]
        rows.update(map(repr, zip(*columns, strict=True)))
    return rows
