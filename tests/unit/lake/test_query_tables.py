"""SQL over tables of main or of a branch: at one hash, from files or from rows, without access to anything else."""

from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table
from pyiceberg.types import ListType, LongType, StringType
from temporalio.exceptions import ApplicationError

from activities.lake.query_tables import QueryTablesActivity
from engine.queries.sql import tables_in
from sluice.contracts.lake_queries import QueryRows, QueryTablesInput
from sluice.errors import InvalidInput
from tests.harness.activity import run_activity
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake
from tests.harness.queries import BlockingQueries, blocking_queries

Query = Callable[..., QueryRows]

RUN, OTHER = "0198a1b2-0000-7000-8000-000000000001", "0198a1b2-0000-7000-8000-000000000002"
BRANCH = f"wap/x/{RUN}/a1"


@pytest.fixture
def lake(tmp_path: Path) -> MemoryLake:
    catalog = MemoryCatalog()
    catalog.initialize_main()
    lake = MemoryLake(catalog, tmp_path, columns=("id", "v"))
    lake.append_rows("main", "shop.orders", [{"id": 1, "v": 10}, {"id": 2, "v": 20}])
    lake.append_rows("main", "a.b.items", [{"id": 1, "v": 5}])
    catalog.create_branch(BRANCH, catalog.head("main"))
    lake.append_rows(BRANCH, "shop.orders", [{"id": 3, "v": 30}])
    return lake


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingQueries]:
    with blocking_queries(tmp_path_factory.mktemp("queries")) as queries:
        yield queries


@pytest.fixture
def query(lake: MemoryLake, queries: BlockingQueries) -> Query:
    def run(sql: str, ref: str = "", **limits: int) -> QueryRows:
        activity = QueryTablesActivity(lake.catalog, {}, queries.runner, **limits)
        running: Coroutine[Any, Any, QueryRows] = run_activity(
            activity.query_tables, QueryTablesInput(sql=sql, ref=ref)
        )
        return queries.wait_for(running)

    return run


@pytest.mark.parametrize(("ref", "total"), [("", 30), ("main", 30), (BRANCH, 60), (RUN, 60)])
def test_main_a_branch_and_the_branch_of_a_run(lake: MemoryLake, query: Query, ref: str, total: int) -> None:
    answer = query("SELECT sum(v)::INT AS total FROM shop.orders", ref)
    assert (answer.columns, answer.rows) == (["total"], [[total]])


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT o.id, i.v FROM shop.orders o JOIN "a.b".items i USING (id)',
        'WITH x AS (SELECT * FROM shop.orders) SELECT x.id, y.v FROM x JOIN "a.b".items AS y ON x.id = y.id',
        'SELECT id, (SELECT max(v) FROM "a.b".items) FROM shop.orders o, shop.orders p WHERE o.id = 1 AND p.id = 1',
    ],
)
def test_queries_over_several_tables(lake: MemoryLake, query: Query, sql: str) -> None:
    assert query(sql.replace("SELECT id, (", "SELECT o.id, (")).rows == [[1, 5]]


def test_nested_columns_are_read_as_rows(lake: MemoryLake, query: Query) -> None:
    def add_list(table: Table) -> None:
        with table.update_schema() as update:
            update.add_column("many", ListType(10, LongType(), element_required=False))

    def add_row(table: Table) -> None:
        row = [{"id": 9, "v": 0, "many": [1, None]}]
        table.append(pa.Table.from_pylist(row, table.schema().as_arrow()))

    lake.change("main", "shop.orders", add_list)
    lake.change("main", "shop.orders", add_row)
    sql = "SELECT many FROM shop.orders WHERE id IN (1, 9) ORDER BY id"
    assert query(sql).rows == [[None], [[1, None]]]
    with pytest.raises(ApplicationError, match=r"docs/reading\.md"):
        query(sql, max_bytes=10)


def test_small_files_with_large_rows_do_not_fill_the_memory_of_the_worker(lake: MemoryLake, query: Query) -> None:
    """These files take some kilobytes, and their rows 280 MiB: the limit on the size of files does not see it."""

    def add_columns(table: Table) -> None:
        with table.update_schema() as update:
            update.add_column("many", ListType(10, LongType(), element_required=False))
            update.add_column("text", StringType())

    def add_rows(table: Table) -> None:
        rows = [{"id": 9, "v": 0, "many": [1], "text": "x" * 2**20}] * 40
        table.append(pa.Table.from_pylist(rows, table.schema().as_arrow()))

    lake.change("main", "shop.orders", add_columns)
    for _ in range(7):
        lake.change("main", "shop.orders", add_rows)
    with pytest.raises(ApplicationError, match=r"shop\.orders need more than 256\.0 MiB of memory.*docs/reading\.md"):
        query("SELECT count(*) FROM shop.orders")


def test_a_hostile_file_is_read_outside_of_the_worker(lake: MemoryLake, query: Query, tmp_path: Path) -> None:
    """A file of some kilobytes has rows of 400 MB in one row group."""
    file = tmp_path / "hostile.parquet"
    count = 400_000
    text = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array(["x" * 1000]))
    nothing = {"id": pa.nulls(count, pa.int64()), "v": pa.nulls(count, pa.int64())}
    many = pa.nulls(count, pa.list_(pa.int64()))
    pq.write_table(pa.table({**nothing, "many": many, "text": text}), file, store_schema=False)
    assert file.stat().st_size < 100_000

    def add_columns(table: Table) -> None:
        with table.update_schema() as update:
            update.add_column("many", ListType(10, LongType(), element_required=False))
            update.add_column("text", StringType())

    lake.change("main", "shop.orders", add_columns)
    lake.change("main", "shop.orders", lambda table: table.add_files([str(file)]))
    usual, counted = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(counted)
    try:
        with pytest.raises(ApplicationError, match=r"more than (256\.0|366\.2) MiB of memory"):
            query("SELECT count(*) FROM shop.orders")
    finally:
        pa.set_memory_pool(usual)
    assert (counted.max_memory() or 0) < 2**20, "the worker itself holds no rows"


@pytest.mark.parametrize(
    ("sql", "ref", "message"),
    [
        ("SELECT * FROM shop.oders", "", "there is no table shop.oders on main (did you mean 'shop.orders'?)"),
        ("SELECT * FROM x.y", "", "there is no table x.y on main; there are a.b.items, shop.orders: "),
        ("SELECT * FROM orders", "", "name the table 'orders' with its namespace"),
        ("SELECT * FROM a.b.items", "", 'write a namespace with dots in quotes: "a.b".items'),
        ("SELECT nme FROM shop.orders", "", 'column "nme" not found'),
        ("SELECT 1; SELECT 2", "", "write one query"),
        ("DROP TABLE shop.orders", "", "write one query"),
        ("SET enable_external_access = true", "", "write one query"),
        ("COPY shop.orders TO 'x.csv'", "", "write one query"),
        ("SELEC", "", "write one query"),
        ("SELEC 1", "", "the query does not parse: invalid expression / unexpected token near '1', line 1, column 7"),
        ("SELECT id FROM shop.orders WHERE id >", "", "the query does not parse: a part is missing near"),
        ("SELECT * FROM", "", "the query does not parse: expected table name near 'FROM', line 1"),
        ("", "", "write one query"),
        ("SELECT * FROM shop.orders", "nobody's", "there is no branch"),
    ],
)
def test_what_is_refused(lake: MemoryLake, query: Query, sql: str, ref: str, message: str) -> None:
    with pytest.raises(ApplicationError) as refused:
        query(sql, ref)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM glob('/*')",
        "SELECT getenv('HOME')",
        "SELECT * FROM duckdb_secrets(), read_text('{file}')",
        "ATTACH '{file}' AS x",
    ],
)
def test_no_other_file_is_read(query: Query, tmp_path: Path, sql: str) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("secret\n")
    with pytest.raises(ApplicationError) as refused:
        query(sql.format(file=file))
    assert "secret\n" not in str(refused.value)


def test_descriptions_and_pivots(lake: MemoryLake, query: Query) -> None:
    described = query("DESCRIBE shop.orders").rows
    assert [row[0] for row in described] == ["id", "v"]
    assert len(query("SUMMARIZE shop.orders").rows) == 2
    pivoted = query("SELECT * FROM (PIVOT shop.orders ON id IN (1, 2) USING sum(v)::INT)")
    assert pivoted.rows == [[10, 20]] or len(pivoted.rows) == 2


@pytest.mark.parametrize("sql", ["SHOW TABLES", "show all tables;"])
def test_the_tables_of_a_ref_are_listed(lake: MemoryLake, query: Query, sql: str) -> None:
    lake.append_rows(BRANCH, "shop.returns", [{"id": 3, "v": 30}])
    tables, head = [["a.b.items"], ["shop.orders"]], lake.catalog.head("main")
    assert query(sql) == QueryRows(columns=["name"], rows=tables, head=head)
    assert query(sql, RUN).rows == [["a.b.items"], ["shop.orders"], ["shop.returns"]]


def test_the_latest_attempt_of_a_run_is_read(lake: MemoryLake, query: Query) -> None:
    for attempt, ids in ((9, [4]), (10, [5, 6])):
        lake.catalog.create_branch(f"wap/{RUN}/{OTHER}/a{attempt}", lake.catalog.head("main"))
        lake.append_rows(f"wap/{RUN}/{OTHER}/a{attempt}", "shop.orders", [{"id": each, "v": 0} for each in ids])
    count = "SELECT count(*)::INT FROM shop.orders"
    assert query(count, OTHER).rows == [[4]]
    assert query(count, RUN).rows == [[3]], "not the branches of that label"


def test_the_tables_of_a_query_are_those_that_it_does_not_define() -> None:
    assert tables_in("WITH s AS (FROM t.a) SELECT * FROM s JOIN t.b USING (id)") == ["t.a", "t.b"]
    assert tables_in("SELECT 1") == []
    with pytest.raises(InvalidInput):
        tables_in("INSERT INTO t.a SELECT * FROM t.b")
