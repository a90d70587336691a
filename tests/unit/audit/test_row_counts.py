"""Rows are counted as people count them: unchanged rows in a rewritten file are not changed."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import Table
from pyiceberg.types import StringType

from activities.run.verify_write import VerifyWriteActivity
from lakehouse.iceberg.row_comparison import ComparisonLimits, count_changed_rows
from lakehouse.iceberg.table_state import TableState
from sluice.contracts.references import BranchRef, RunRef
from sluice.contracts.table_changes import RowCounts, RowNumbers, TableChange
from sluice.contracts.write import JobReport, VerifyWriteInput
from sluice.pipeline.write import Write
from sluice.pipeline.write_modes import WRITE_MODES
from sluice.presentation.changes import describe_change
from sluice.publishing.branch_properties import marks
from sluice.publishing.row_counts import compared_row_counts, merge_on_read_counts, written_row_counts
from tests.harness.activity import run_activity
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake

REWRITTEN = TableChange(operation="overwrite", added_rows=192, deleted_rows=142)


def test_a_merge_is_counted_by_the_keys_of_its_input() -> None:
    rows = written_row_counts(REWRITTEN, WRITE_MODES["merge"], rows_merged=100)
    assert rows == RowCounts(inserted=50, updated=50, rewritten=92, known_by="keys of the input")
    assert describe_change(REWRITTEN.model_copy(update={"rows": rows})) == (
        "50 inserted, 50 updated (92 rewritten unchanged)"
    )


def test_a_merge_that_deletes_in_place_carries_nothing_along() -> None:
    change = TableChange(operation="overwrite", added_rows=100, deleted_rows=50)
    rows = written_row_counts(change, WRITE_MODES["merge"], rows_merged=100)
    assert rows == RowCounts(inserted=50, updated=50, known_by="keys of the input")


@pytest.mark.parametrize("rows_merged", [None, 49, 200])
def test_a_merge_whose_numbers_do_not_add_up_is_not_counted_by_keys(rows_merged: int | None) -> None:
    """The number is missing, or the table has keys more than once."""
    assert written_row_counts(REWRITTEN, WRITE_MODES["merge"], rows_merged) is None


def test_an_overwrite_replaces_rows_by_others() -> None:
    change = TableChange(operation="overwrite", added_rows=100, deleted_rows=250)
    rows = written_row_counts(change, WRITE_MODES["overwrite"])
    assert describe_change(change.model_copy(update={"rows": rows})) == "250 replaced by 100"


@pytest.mark.parametrize(
    ("change", "description"),
    [
        (TableChange(operation="append", added_rows=1200), "1,200 inserted"),
        (TableChange(operation="append", added_rows=2, created=True), "2 inserted"),
        (TableChange(operation="delete", deleted_rows=3), "3 removed"),
        (TableChange(operation="alter"), "no row changed"),
        (
            TableChange(operation="replace", added_rows=250, deleted_rows=250, added_files=2, removed_files=12),
            "12 files into 2, rows unchanged",
        ),
        (
            TableChange(operation="replace", added_rows=2, deleted_rows=2, added_files=1, removed_files=1),
            "1 file into 1, rows unchanged",
        ),
        (
            TableChange(operation="overwrite", added_rows=200, deleted_rows=200),
            "files of 200 rows rewritten into 200; how many of them changed is not known",
        ),
        (
            TableChange(operation="overwrite", added_rows=5, deletes_by_value=True),
            "5 inserted; rows deleted by value, which metadata does not count",
        ),
    ],
)
def test_a_change_is_described_by_its_kind(change: TableChange, description: str) -> None:
    assert describe_change(change) == description


def test_deletes_in_place() -> None:
    rows = merge_on_read_counts(added=3, deleted=5)
    assert rows == RowCounts(updated=3, removed=2, known_by="deletes in place")


def test_rows_are_compared_with_their_number() -> None:
    rows = compared_row_counts(Counter(["a", "a", "b", "c"]), Counter(["a", "b", "d"]))
    assert rows == RowCounts(updated=1, removed=1, rewritten=2, known_by="rows compared")


@pytest.fixture
def lake(tmp_path: Path) -> MemoryLake:
    catalog = MemoryCatalog()
    catalog.initialize_main()
    lake = MemoryLake(catalog, tmp_path, columns=("id", "v"))
    lake.append_rows("main", "t.x", [{"id": each, "v": 0} for each in range(100)])
    lake.append_rows("main", "t.x", [{"id": 1000, "v": 0}])
    catalog.create_branch("b", catalog.head("main"))
    return lake


def _state(lake: MemoryLake) -> TableState:
    after, before = (lake.catalog.table_version(branch, "t.x") for branch in ("b", "main"))
    assert after
    return TableState.load(after, before, {})


def _update(lake: MemoryLake, ids: list[int], value: int, run: RunRef | None = None) -> None:
    rows = pa.Table.from_pylist([{"id": each, "v": value} for each in ids], lake.arrow_schema)

    def upsert(table: Table) -> None:
        table.upsert(rows, join_cols=["id"], snapshot_properties=marks(run) if run else {})

    lake.change("b", "t.x", upsert)


def test_a_repair_of_five_rows_changes_five(lake: MemoryLake) -> None:
    _update(lake, [1, 2, 3, 4, 5], value=9)
    state = _state(lake)
    assert state.change().added_rows == state.change().deleted_rows == 100
    rows = count_changed_rows(state)
    assert rows == RowCounts(updated=5, rewritten=95, known_by="rows compared")


def test_rows_that_were_inserted_and_then_repaired_are_inserted(lake: MemoryLake) -> None:
    """In the release of a quarantine with a repair, main before and after counts."""
    lake.append_rows("b", "t.x", [{"id": each, "v": -1} for each in range(200, 210)])
    _update(lake, [200, 1], value=9)
    assert count_changed_rows(_state(lake)) == RowCounts(inserted=10, updated=1, rewritten=99, known_by="rows compared")


def test_the_rows_that_the_sql_of_a_repair_changes_are_counted_apart_from_those_of_the_load(lake: MemoryLake) -> None:
    run = RunRef(run_id="r", workflow_id="w", pipeline="p", label="p", attempt=1)
    lake.append_rows("b", "t.x", [{"id": each, "v": -1} for each in range(200, 210)], run)
    loaded = lake.catalog.head("b")
    _update(lake, [200, 201, 1], value=9, run=run)
    given = VerifyWriteInput(
        run_ref=run,
        branch=BranchRef(name="b", base=lake.catalog.head("main"), catalog_id=lake.catalog.identity()),
        write=Write.model_validate({"mode": "sql", "statements": ["UPDATE t.x SET v = 9"]}),
        tables=["t.x"],
        job=JobReport(),
        since=loaded,
    )
    verify = VerifyWriteActivity(lake.catalog, {}).verify_write
    assert run_activity(verify, given).repaired == {}
    repaired = run_activity(verify, given.model_copy(update={"repairs": True})).repaired
    assert repaired == {"t.x": RowNumbers(updated=3, rewritten=107)}


def test_a_column_that_came_meanwhile_changes_no_row(lake: MemoryLake) -> None:
    def add_column(table: Table) -> None:
        with table.update_schema() as update:
            update.add_column("note", StringType())

    def repair(table: Table) -> None:
        row = pa.Table.from_pylist([{"id": 7, "v": 3, "note": None}], table.schema().as_arrow())
        table.overwrite(row, overwrite_filter="id = 7")

    lake.change("b", "t.x", add_column)
    lake.change("b", "t.x", repair)
    assert count_changed_rows(_state(lake)) == RowCounts(updated=1, rewritten=99, known_by="rows compared")


def test_files_that_cannot_be_read_end_no_run(lake: MemoryLake) -> None:
    _update(lake, [1], value=9)
    state = _state(lake)
    for entry in state.live.added:
        Path(entry.data_file.file_path.removeprefix("file://")).write_bytes(b"no Parquet")
    assert count_changed_rows(state) is None


@pytest.mark.parametrize("limit", ["values", "bytes", "memory"])
def test_many_rows_are_not_compared(limit: str, lake: MemoryLake) -> None:
    _update(lake, [1], value=9)
    assert count_changed_rows(_state(lake)) is not None
    assert count_changed_rows(_state(lake), ComparisonLimits(**{limit: 10})) is None


def test_rows_that_were_only_added_or_only_removed_need_no_look(lake: MemoryLake) -> None:
    lake.append_rows("b", "t.x", [{"id": 5, "v": 5}])
    assert count_changed_rows(_state(lake)) is None
