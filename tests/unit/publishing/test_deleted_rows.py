"""A write with deletes alone is counted from the row counts of files, however large the table."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakehouse.iceberg.written_table import read_written_table
from sluice.contracts.references import BranchRef, RunRef
from sluice.contracts.table_changes import RowCounts, TableChange
from sluice.contracts.write import JobReport, VerifyWriteInput
from sluice.pipeline.write import Write
from sluice.presentation.changes import describe_change
from sluice.publishing.row_counts import deleted_row_counts
from sluice.publishing.written_tables import WrittenTable, check_write
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake

RUN = RunRef(run_id="r", workflow_id="w", pipeline="p", label="p", attempt=1)
COUNTED = RowCounts(removed=5, rewritten=95, known_by="deletes alone")


@pytest.fixture
def written(tmp_path: Path) -> WrittenTable:
    """A table of two files, one with five deleted rows. Its rows were not compared."""
    catalog = MemoryCatalog()
    catalog.initialize_main()
    lake = MemoryLake(catalog, tmp_path)
    lake.append("main", "t.x", range(100), RUN)
    lake.append("main", "t.x", [1000], RUN)
    base = catalog.head("main")
    catalog.create_branch("b", base)
    lake.change("b", "t.x", lambda table: table.delete("id < 5"))
    (diff,) = catalog.diff(base, "b", catalog.head("b"))
    written = read_written_table(diff, diff.before, {}, "r", [1])
    assert written.change
    return replace(written, foreign_snapshots=0, change=written.change.model_copy(update={"rows": None}))


def checked(written: WrittenTable, *statements: str) -> TableChange:
    write = Write.model_validate({"mode": "sql", "statements": list(statements)})
    branch = BranchRef(name="b", base="0", catalog_id="c")
    input = VerifyWriteInput(run_ref=RUN, branch=branch, write=write, tables=["t.x"], job=JobReport())
    return check_write(input, [written])["t.x"]


@pytest.mark.parametrize(
    ("statements", "rows"),
    [
        (["DELETE FROM t.x WHERE id < 5"], COUNTED),
        (["/* why */ delete\nfrom t.x where id < 3; ", "DELETE FROM t.x WHERE id < 5"], COUNTED),
        (["DELETE FROM t.x WHERE id < 5", "UPDATE t.x SET id = 1 WHERE id = 1000"], None),
        (["INSERT INTO t.x VALUES (1)"], None),
    ],
)
def test_what_is_left_of_rewritten_files_was_not_changed(
    written: WrittenTable, statements: list[str], rows: RowCounts | None
) -> None:
    assert written.change and written.change.rows is None and not written.has_row_deletes
    change = checked(written, *statements)
    assert change.rows == rows
    if rows:
        assert describe_change(change) == "5 removed (95 rewritten unchanged)"


def test_rows_that_were_deleted_in_place_before_would_be_counted_twice(written: WrittenTable) -> None:
    assert checked(replace(written, has_row_deletes=True), "DELETE FROM t.x WHERE id < 5").rows is None


@pytest.mark.parametrize(
    "change",
    [
        TableChange(operation="delete", deleted_rows=3),
        TableChange(operation="append", added_rows=3),
        TableChange(operation="overwrite", added_rows=4, deleted_rows=3),
        TableChange(operation="overwrite", added_rows=2, deleted_rows=3, deletes_by_value=True),
        TableChange(operation="overwrite", added_rows=3, deleted_rows=1, created=True),
    ],
)
def test_other_changes_are_not_counted_so(change: TableChange) -> None:
    assert deleted_row_counts(change) is None
