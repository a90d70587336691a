"""The diff of two states of the lake: what a person can name, which files are read, and what the answer says."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import EqualTo
from pyiceberg.table import Table
from pyiceberg.types import ListType, LongType
from temporalio.exceptions import ApplicationError

from activities.lake.diff_tables import DiffTablesActivity
from lakehouse.catalog import TableCommit
from lakehouse.iceberg import diffed_rows
from lakehouse.iceberg.table_state import clear_table_caches
from sluice.contracts.lake_queries import MAX_RESULT_BYTES
from sluice.contracts.references import BranchRef
from sluice.contracts.table_diffs import ChangedCell, DiffTablesInput, DiffTablesResult, TableDiffResult, TableKey
from sluice.publishing.commit_properties import BASE, PIPELINE, QUARANTINED, RUN_ID, WORKFLOW_ID
from tests.harness.activity import run_activity
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake
from tests.harness.queries import BlockingQueries, blocking_queries

RUN = "0198a1b2-0000-7000-8000-000000000001"
BRANCH = f"wap/x/{RUN}/a1"
TABLE = "shop.orders"
MERGE_KEYS = {TABLE: TableKey(columns=["id"], source="merge keys")}

Ask = Callable[..., DiffTablesResult]


@pytest.fixture
def lake(tmp_path: Path) -> MemoryLake:
    """Main has a table of three files; the branch of a run can change it."""
    catalog = MemoryCatalog()
    catalog.initialize_main()
    lake = MemoryLake(catalog, tmp_path, columns=("id", "v"))
    for first in (0, 100, 200):
        lake.append_rows("main", TABLE, [{"id": each, "v": 0} for each in range(first, first + 100)])
    catalog.create_branch(BRANCH, catalog.head("main"))
    return lake


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingQueries]:
    with blocking_queries(tmp_path_factory.mktemp("queries")) as queries:
        yield queries


@pytest.fixture
def ask(lake: MemoryLake, queries: BlockingQueries) -> Ask:
    plain = DiffTablesActivity(lake.catalog, {}, queries.runner)

    def ask(what: str = RUN, activity: DiffTablesActivity = plain, **more: Any) -> DiffTablesResult:
        input = DiffTablesInput.model_validate({"what": what, **more})
        result: DiffTablesResult = queries.wait_for(run_activity(activity.diff_tables, input))
        return result

    return ask


def upsert(lake: MemoryLake, ids: list[int], value: int, branch: str = BRANCH) -> None:
    rows = pa.Table.from_pylist([{"id": each, "v": value} for each in ids], lake.arrow_schema)
    lake.change(branch, TABLE, lambda table: table.upsert(rows, join_cols=["id"]))


def only(result: DiffTablesResult) -> TableDiffResult:
    (table,) = result.tables
    return table


def numbers(table: TableDiffResult) -> tuple[int, int, int, int]:
    assert table.rows, table.problem
    return table.rows.added, table.rows.removed, table.rows.changed, table.rows.rewritten


def test_the_branch_of_a_run_against_its_base(lake: MemoryLake, ask: Ask) -> None:
    upsert(lake, [5, 7, 300], 9)
    lake.change(BRANCH, TABLE, lambda table: table.delete(EqualTo(term="id", value=6)))
    for named in (RUN, BRANCH):
        result = ask(named, known_keys=MERGE_KEYS)
        table = only(result)
        assert (table.state, numbers(table)) == ("changed", (1, 1, 2, 97))
        assert table.key == MERGE_KEYS[TABLE] and table.notes == []
    assert table.rows
    assert [each.cells for each in table.rows.changed_rows] == [{"v": ChangedCell(before=0, after=9)}] * 2
    assert table.rows.added_rows == [{"id": 300, "v": 9}] and table.rows.removed_rows == [{"id": 6, "v": 0}]
    assert (result.before.branch, result.before.hash) == ("main", lake.catalog.head("main"))
    assert (result.after.branch, result.after.hash, result.after.run_id) == (BRANCH, lake.catalog.head(BRANCH), RUN)


def test_only_files_that_differ_are_read(lake: MemoryLake, ask: Ask, tmp_path: Path) -> None:
    upsert(lake, [5], 9)
    read = only(ask(known_keys=MERGE_KEYS)).read
    assert read.all_files > read.files >= 2 and read.all_bytes and read.all_bytes > read.bytes > 0
    for file in (tmp_path / TABLE / "data").glob("*.parquet"):
        if len(read_ids(file)) == 100 and 5 not in read_ids(file):
            file.write_bytes(b"a file that no diff may read")
    upsert_again = ask(known_keys=MERGE_KEYS, rows=11)
    assert numbers(only(upsert_again)) == (0, 0, 1, 99)


def read_ids(file: Path) -> list[int]:
    content = file.read_bytes()
    if content[:4] != b"PAR1":
        return []
    ids: list[int] = pq.read_table(pa.BufferReader(content))["id"].to_pylist()
    return ids


def test_appended_rows_are_counted_by_metadata(lake: MemoryLake, ask: Ask) -> None:
    lake.append_rows(BRANCH, TABLE, [{"id": each, "v": 1} for each in range(1000, 1040)])
    table = only(ask(rows=3))
    assert (table.state, numbers(table)) == ("changed", (40, 0, 0, 0))
    assert table.rows and len(table.rows.added_rows) == 3
    assert only(ask(rows=0)).read.files == 0


def test_tables_that_were_created_and_dropped(lake: MemoryLake, ask: Ask) -> None:
    lake.append_rows(BRANCH, "shop.new", [{"id": 1, "v": 1}])
    lake.catalog.commit_tables(BRANCH, lake.catalog.head(BRANCH), "drop", [TableCommit(TABLE, None)])
    new, orders = ask().tables
    assert (new.table, new.state, numbers(new)) == ("shop.new", "created", (1, 0, 0, 0))
    assert (orders.state, numbers(orders), orders.snapshot_after) == ("dropped", (0, 300, 0, 0), None)
    assert orders.rows and len(orders.rows.removed_rows) == 10


def test_a_table_whose_files_alone_changed_is_unchanged(lake: MemoryLake, ask: Ask) -> None:
    rows = lake.rows(TABLE, BRANCH)
    lake.replace_rows(BRANCH, TABLE, rows)
    table = only(ask(known_keys=MERGE_KEYS))
    assert (table.state, numbers(table)) == ("unchanged", (0, 0, 0, 300))


def test_columns_by_field_id(lake: MemoryLake, ask: Ask) -> None:
    def evolve(table: Table) -> None:
        with table.update_schema() as update:
            update.rename_column("v", "value")
            update.add_column("note", LongType())

    lake.change(BRANCH, TABLE, evolve)
    table = only(ask(known_keys=MERGE_KEYS))
    assert (table.state, numbers(table)) == ("schema only", (0, 0, 0, 0))
    changes = [(each.change, each.column, each.before, each.after) for each in table.schema_changes]
    assert changes == [("added", "note", "", "long"), ("renamed", "value", "v", "value")]


def test_no_key_and_a_chosen_key(lake: MemoryLake, ask: Ask) -> None:
    upsert(lake, [5], 9)
    table = only(ask())
    assert (numbers(table), table.key.source) == ((1, 1, 0, 99), "none")
    assert "choose one with --key" in table.notes[0]
    table = only(ask(key=["id"]))
    assert (numbers(table), table.key.source) == ((0, 0, 1, 99), "chosen")
    table = only(ask(key=["v"]))
    assert numbers(table) == (1, 1, 0, 99)
    assert "the key is not unique" in table.notes[0]
    with pytest.raises(ApplicationError, match=r"no column 'idd' .*did you mean 'id'"):
        ask(key=["idd"])


def test_nested_columns_are_compared_in_memory(lake: MemoryLake, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def add_list(table: Table) -> None:
        with table.update_schema() as update:
            update.add_column("many", ListType(10, LongType(), element_required=False))

    def set_list(table: Table) -> None:
        rows = [{"id": 5, "v": 0, "many": [1, None]}, {"id": 900, "v": 0, "many": []}]
        arrow = pa.Table.from_pylist(rows, table.schema().as_arrow())
        table.overwrite(arrow, overwrite_filter=EqualTo(term="id", value=5))

    lake.change(BRANCH, TABLE, add_list)
    lake.change(BRANCH, TABLE, set_list)
    table = only(ask(known_keys=MERGE_KEYS))
    assert numbers(table) == (1, 0, 1, 99)
    assert table.rows and table.rows.changed_rows[0].cells == {"many": ChangedCell(before=None, after=[1, None])}
    monkeypatch.setattr(diffed_rows, "_MAX_BYTES", 10)
    table = only(ask(known_keys=MERGE_KEYS, rows=9))
    assert table.state == "not compared" and "nested columns" in table.problem
    assert table.schema_changes


def test_main_that_moved_is_named(lake: MemoryLake, ask: Ask) -> None:
    upsert(lake, [5], 9)
    base = lake.catalog.head("main")
    assert ask().moved == []
    lake.append_rows("main", TABLE, [{"id": 777, "v": 7}])
    result = ask(known_keys=MERGE_KEYS)
    assert result.moved == [TABLE] and result.before.hash == base
    assert numbers(only(result)) == (0, 0, 1, 99)


def test_an_earlier_hash_of_a_branch(lake: MemoryLake, ask: Ask) -> None:
    upsert(lake, [5], 9)
    audited = lake.catalog.head(BRANCH)
    upsert(lake, [6, 7], 9)
    assert numbers(only(ask(known_keys=MERGE_KEYS, head=audited)))[2] == 1


@pytest.fixture
def published(lake: MemoryLake) -> list[str]:
    """Main after each of two publications."""
    heads, catalog = [], lake.catalog
    for run, ids in (("r1", [1, 2]), ("r2", [2, 3])):
        branch = BranchRef(name=f"wap/y/{run}", base=catalog.head("main"), catalog_id=catalog.identity())
        catalog.create_branch(branch.name, branch.base)
        upsert(lake, ids, 5 if run == "r1" else 6, branch.name)
        properties = {RUN_ID: f"{run}-id", WORKFLOW_ID: f"{run}-workflow", PIPELINE: "orders"}
        heads.append(catalog.publish(branch, catalog.head(branch.name), "ana", "publish", properties).main_after)
        catalog.delete_branch(branch.name)
    return heads


def test_publications(lake: MemoryLake, ask: Ask, published: list[str]) -> None:
    first, second = published
    for named in (first, first[:8], "r1-id", "r1-workflow"):
        result = ask(named, known_keys=MERGE_KEYS)
        assert numbers(only(result))[2] == 2
        assert result.after.description == "main after the publication of r1-workflow"
    assert ask("orders").after.hash == second
    between = ask(first, other=second, known_keys=MERGE_KEYS)
    assert numbers(only(between))[2] == 2 and (between.before.hash, between.after.hash) == (first, second)
    assert numbers(only(ask("r2-id", other="r1-id", known_keys=MERGE_KEYS)))[2] == 2
    assert ask(second, other="main").tables == []
    with pytest.raises(ApplicationError, match=r"no branch, run or commit 'ordrs' \(did you mean 'orders'\?\): give"):
        ask("ordrs")


def test_a_quarantine(lake: MemoryLake, ask: Ask) -> None:
    upsert(lake, [5], 9)
    catalog, name = lake.catalog, "quarantine/orders/2026-01-01/q1"
    head = catalog.head(BRANCH)
    catalog.copy_branch(name, BRANCH, head)
    properties = {RUN_ID: "q1", WORKFLOW_ID: "w1", PIPELINE: "orders", BASE: catalog.head("main"), QUARANTINED: head}
    catalog.commit_tables(name, head, "quarantine", properties=properties)
    for named in (name, "q1", "w1"):
        result = ask(named, known_keys=MERGE_KEYS)
        assert numbers(only(result)) == (0, 0, 1, 99) and result.after.hash == head


@pytest.mark.parametrize(
    ("what", "more", "message"),
    [
        ("nobody's", {}, "there is no branch, run or commit"),
        ("", {}, "there is no branch, run or commit ''"),
        ("main", {}, "main has no base"),
        (RUN, {"table": "shop.order"}, "does not differ"),
        (RUN, {"other": "nobody's"}, "there is no branch, run or commit"),
    ],
)
def test_what_is_refused(lake: MemoryLake, ask: Ask, what: str, more: dict[str, str], message: str) -> None:
    upsert(lake, [5], 9)
    with pytest.raises(ApplicationError, match=message):
        ask(what, **more)


def test_the_same_diff_is_computed_once(lake: MemoryLake, ask: Ask, tmp_path: Path) -> None:
    upsert(lake, [5], 9)
    first = ask(known_keys=MERGE_KEYS)
    for file in (tmp_path / TABLE / "data").glob("*.parquet"):
        file.unlink()
    assert ask(known_keys=MERGE_KEYS) == first
    assert only(ask(known_keys=MERGE_KEYS, rows=11)).state == "not compared"


def test_many_wide_rows_fit_into_one_message(lake: MemoryLake, ask: Ask) -> None:
    upsert(lake, list(range(300)), 9)
    result = ask(known_keys=MERGE_KEYS, rows=1000)
    assert numbers(only(result))[2] == 300
    assert len(result.model_dump_json()) < MAX_RESULT_BYTES


def test_rows_by_partition(lake: MemoryLake, ask: Ask) -> None:
    name = "shop.by_v"
    lake.create_table("main", name, partition_by=["v"])
    lake.append_rows("main", name, [{"id": each, "v": each % 3} for each in range(9)])
    base = lake.catalog.head("main")
    lake.append_rows("main", name, [{"id": each, "v": 1} for each in (100, 101)])
    appended = lake.catalog.head("main")
    lake.replace_partitions("main", name, [{"id": 0, "v": 0}, {"id": 77, "v": 0}])

    def by_partition(*hashes: str) -> dict[str, tuple[int, int, int]]:
        (compared,) = ask(hashes[0], other=hashes[1], table=name, key=["id"]).tables
        assert compared.rows
        return {each.partition: (each.added, each.removed, each.changed) for each in compared.rows.partitions}

    assert by_partition(base, appended) == {"v=1": (2, 0, 0)}
    assert by_partition(appended, "main") == {"v=0": (1, 2, 0)}


def test_limits_are_stated(lake: MemoryLake, ask: Ask, queries: BlockingQueries) -> None:
    upsert(lake, [5], 9)
    lake.append_rows(BRANCH, "shop.zzz", [{"id": 1, "v": 1}])
    few = DiffTablesActivity(lake.catalog, {}, queries.runner, max_tables=1)
    result = ask(known_keys=MERGE_KEYS, activity=few)
    assert only(result).table == TABLE and result.left_out == ["shop.zzz"]
    late = only(ask(known_keys=MERGE_KEYS, rows=5, activity=replace(few, seconds=0)))
    assert late.state == "not compared" and "choose this one with --table" in late.problem


def test_a_state_whose_files_were_deleted(lake: MemoryLake, ask: Ask, tmp_path: Path) -> None:
    base = lake.catalog.head("main")
    lake.append_rows("main", TABLE, [{"id": 777, "v": 7}])
    clear_table_caches()
    for file in (tmp_path / TABLE / "metadata").glob("*-m*.avro"):
        file.unlink()
    table = only(ask(base, other="main"))
    assert table.state == "not compared" and "a file of an earlier state was deleted" in table.problem
