"""Read the changes of a quarantine and of its release's branch from metadata, for the release to verify."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lakehouse.catalog import TableDiff
from lakehouse.iceberg.table_state import Maker, TableState
from lakehouse.iceberg.written_table import read_written_table
from sluice.publishing.written_tables import WrittenTable


def read_marked_tables(
    diffs: Sequence[TableDiff], io: Mapping[str, str], makers: Sequence[Maker]
) -> list[WrittenTable]:
    """Read a branch's changes, with the number of new snapshots that none of these runs made."""
    return [_read(diff, io, makers) for diff in diffs]


def _read(diff: TableDiff, io: Mapping[str, str], makers: Sequence[Maker]) -> WrittenTable:
    if diff.after is None:
        return WrittenTable(diff.name, None)
    state = TableState.load(diff.after, diff.before, io)
    foreign = state.unmarked(makers)
    run_id, attempts = makers[0]
    return replace(read_written_table(diff, diff.before, io, run_id, attempts), foreign_snapshots=len(foreign))
