"""Read a branch's changes of one table, to decide if a write is complete."""

from collections.abc import Iterable, Mapping

from pyiceberg.table import StaticTable
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation

from lakehouse.catalog import TableDiff, TableVersion
from lakehouse.iceberg.row_comparison import count_changed_rows
from lakehouse.iceberg.table_state import TableState, snapshot_property
from sluice.pipeline.table_properties import unsafe_changes
from sluice.publishing.load_properties import PARTITION_MARK, PIPELINE_MARK
from sluice.publishing.written_tables import LastStep, TableHistory, WrittenTable


def read_written_table(
    diff: TableDiff, since: TableVersion | None, io: Mapping[str, str], run_id: str, attempts: Iterable[int]
) -> WrittenTable:
    """Read a branch's changes of one table, to decide if the write is complete.

    Args:
        since: the version after which every snapshot must be the run's; None means from the first.
        attempts: the attempts of the run that may have made them.
    """
    if diff.after is None:
        return WrittenTable(diff.name, None)
    state = TableState.load(diff.after, diff.before, io)
    checked = state if since == diff.before else TableState.load(diff.after, since, io)
    return WrittenTable(
        diff.name,
        state.change().model_copy(update={"rows": count_changed_rows(state)}),
        foreign_snapshots=len(checked.unmarked([(run_id, attempts)])),
        same_rows=state.same_rows,
        has_row_deletes=state.row_deletes or (state.before is not None and TableState(state.before, None).row_deletes),
        history=_history(checked),
        last_step=_last_step(state, checked),
        replaced=_replaced(state),
    )


def _replaced(state: TableState) -> set[tuple[str, str]]:
    """Return the pipelines and partitions of the runs whose files the table no longer has."""
    before = {each.snapshot_id: each for each in state.before.snapshots()} if state.before else {}
    makers = [before[id] for id in {entry.snapshot_id for entry in state.live.removed} if id in before]
    marks = {(snapshot_property(each, PIPELINE_MARK), snapshot_property(each, PARTITION_MARK)) for each in makers}
    return {(pipeline, partition) for pipeline, partition in marks if pipeline and partition}


def _history(state: TableState) -> TableHistory:
    """Compare the past, the branches and the properties in a table's metadata with those before the run."""
    before, after = state.before, state.table
    if before is None:
        known, refs_before, properties_before = set[int](), dict[str, str](), dict[str, str]()
    else:
        known = {each.snapshot_id for each in before.snapshots()}
        refs_before, properties_before = _refs(before), dict(before.properties)
    kept, refs, current = {each.snapshot_id for each in after.snapshots()}, _refs(after), after.current_snapshot()
    current_before = before.current_snapshot() if before else None
    was_moved = (current and current.snapshot_id) != (current_before and current_before.snapshot_id)
    return TableHistory(
        expired_snapshots=len(known - kept),
        was_recreated=before is not None and before.metadata.table_uuid != after.metadata.table_uuid,
        was_set_back=was_moved and (current is None or current.snapshot_id in known),
        changed_refs=sorted(name for name in {*refs, *refs_before} if refs.get(name) != refs_before.get(name)),
        unsafe_properties=unsafe_changes(properties_before, after.properties),
    )


def _refs(table: StaticTable) -> dict[str, str]:
    """Return the branches and tags inside a table, except main, each with all its fields."""
    return {name: ref.model_dump_json() for name, ref in table.metadata.refs.items() if name != MAIN_BRANCH}


def _last_step(state: TableState, since: TableState) -> LastStep:
    """Return the changes of a table since a part of the run was verified."""
    removed, removed_of_base = ({entry.data_file.file_path for entry in each.live.removed} for each in (since, state))
    marked_of_base = since.live.marked_files - {entry.data_file.file_path for entry in state.live.added}
    appended = [each for each in since.snapshots if each.summary and each.summary.operation == Operation.APPEND]
    return LastStep(
        added_rows=since.live.added_rows,
        deleted_rows=since.live.deleted_rows,
        appended_rows=sum(int(snapshot_property(each, "added-records") or 0) for each in appended),
        removed_base_files=len(removed & removed_of_base) + len(marked_of_base),
    )
