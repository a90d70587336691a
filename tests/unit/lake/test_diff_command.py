"""The output of `diff`: counts of rows, cells before and after, and no control over the terminal."""

import io

import pytest
from rich.console import Console

from cli.lake.diff import print_diff
from sluice.contracts.table_diffs import (
    ChangedCell,
    ChangedRow,
    ColumnChanges,
    DiffSide,
    DiffTablesResult,
    FilesRead,
    PartitionChanges,
    RowDifferences,
    SchemaChange,
    TableDiffResult,
    TableDiffState,
    TableKey,
)

MINUS = "\N{MINUS SIGN}"
BEFORE = DiffSide(branch="main", hash="a" * 64, description="main at the base of the branch")
AFTER = DiffSide(branch="wap/x/r/a1", hash="b" * 64, description="wap/x/r/a1")
ROWS = RowDifferences(
    added=12_408,
    removed=37,
    changed=1_204,
    rewritten=5,
    columns=[ColumnChanges(column="amount", cells=1_204), ColumnChanges(column="name", cells=3)],
    partitions=[PartitionChanges(partition="month=1", added=12_408, removed=37)],
    more_partitions=2,
    added_rows=[{"id": 7, "name": None, "amount": 1.5}],
    changed_rows=[
        ChangedRow(
            key={"id": 5},
            cells={"amount": ChangedCell(before=1.0, after=2.0), "name": ChangedCell(before=None, after="\x1b[31mred")},
        )
    ],
)
TABLE = TableDiffResult(
    table="shop.orders",
    state="changed",
    key=TableKey(columns=["id"], source="merge keys"),
    rows=ROWS,
    schema_changes=[
        SchemaChange(field_id=4, change="added", column="note", after="string"),
        SchemaChange(field_id=2, change="renamed", column="name", before="title", after="name"),
        SchemaChange(field_id=3, change="type changed", column="amount", before="float", after="double"),
        SchemaChange(field_id=9, change="dropped", column="old", before="long"),
    ],
    read=FilesRead(files=3, bytes=2048, all_files=512, all_bytes=4 * 2**30),
)


def printed(*tables: TableDiffResult, **more: object) -> str:
    output = io.StringIO()
    result = DiffTablesResult.model_validate({"before": BEFORE, "after": AFTER, "tables": tables, **more})
    print_diff(Console(file=output, width=140), result)
    return output.getvalue()


def test_numbers_have_a_sign_and_cells_two_values() -> None:
    lines = [" ".join(line.split()) for line in printed(TABLE).splitlines()]
    assert lines[0].startswith("wap/x/r/a1 at bbbbbbbbbbbb, compared with main at the base of the branch at aaaaaaaa")
    assert (
        "shop.orders changed: 12,408 rows added, 37 removed, 1,204 changed; 5 rows rewritten unchanged; "
        "key id (merge keys); "
        "read 3 of 512 files (2.0 KiB of 4.0 GiB)"
    ) in lines
    for expected in (
        "column + note string", "column title → name", "column amount float → double", "column - old long",
        "amount 1,204", f"month=1 +12,408 {MINUS}37 0", "and 2 more partitions", "1 of 1,204 changed rows",
        "5 amount 1.0 → 2.0", "name null → \\x1b[31mred", "1 of 12,408 added rows", "7 null 1.5",
    ):  # fmt: skip
        assert expected in lines, expected
    assert "\x1b" not in printed(TABLE)


def test_several_tables_have_an_overview() -> None:
    new = TableDiffResult(table="shop.new\x1b", state="created", rows=RowDifferences(added=1))
    lines = [" ".join(line.split()) for line in printed(TABLE, new, moved=["shop.orders"]).splitlines()]
    assert f"shop.orders changed +12,408 {MINUS}37 ~1,204" in lines
    assert "shop.new\\x1b created +1 0 0" in lines
    assert (
        "hint main changed shop.orders after the base of the branch; the diff does not contain these changes" in lines
    )


@pytest.mark.parametrize(
    ("state", "rows", "summary"),
    [
        ("created", {"added": 400}, "created, 400 rows"),
        ("dropped", {"removed": 1}, "dropped, 1 row"),
        ("created", {}, "created, 0 rows"),
        ("changed", {"removed": 1, "changed": 2}, "changed: 1 row removed, 2 changed"),
        ("schema only", {}, "schema only"),
    ],
)
def test_the_summary_of_a_table_is_in_words(state: TableDiffState, rows: dict[str, int], summary: str) -> None:
    table = TableDiffResult(table="a.b", state=state, rows=RowDifferences(**rows))
    assert f"a.b  {summary}; read 0 of 0 files" in printed(table)


def test_rows_that_were_not_compared_have_a_reason() -> None:
    table = TableDiffResult(table="a.b", state="not compared", problem="rows were deleted by value")
    lines = [" ".join(line.split()) for line in printed(table, left_out=["c.d"]).splitlines()]
    assert "a.b not compared" in lines and "not compared rows were deleted by value" in lines
    assert "not compared c.d: choose one with --table" in lines
    assert "No table differs." in printed()
