"""The tables that a run watches from its audit until its merge: all tables that its checks read."""

from typing import Any

import pytest

from sluice.contracts.existing_rows import RebaseBranchInput
from sluice.contracts.references import BranchRef, RunRef
from sluice.contracts.table_changes import TableChange
from sluice.contracts.write import WriteResult
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write
from sluice.publishing.rebase import moved_tables_problem
from sluice.publishing.watched_tables import watched_tables

SOURCE = {"source": {"path": "/in.csv"}}


def table(*checks: dict[str, Any]) -> Table:
    return Table.model_validate({"checks": list(checks)})


def query(text: str, **more: Any) -> Table:
    return table({"check": "sql", "query": text, **more})


@pytest.mark.parametrize("ref", ["branch", "main"])
def test_a_referenced_table_is_watched_whatever_its_ref(ref: str) -> None:
    orders = table({"check": "relationships", "column": "customer", "to": "t.customers", "field": "id", "ref": ref})
    assert watched_tables({"t.orders": orders}) == ["t.customers", "t.orders"]


def test_a_table_with_checks_is_watched_also_where_the_run_may_leave_it_as_it_is() -> None:
    assert watched_tables({"t.x": table({"check": "not_null", "column": "id"}), "t.y": table()}) == ["t.x"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t.orders o LEFT ANTI JOIN t.customers c ON o.customer = c.id",
        "SELECT * FROM t.orders WHERE customer NOT IN (SELECT id FROM t.customers)",
        "SELECT * FROM t.orders o WHERE NOT EXISTS (SELECT 1 FROM t.customers c WHERE c.id = o.customer)",
        "WITH c AS (SELECT id FROM t.customers) SELECT o.* FROM t.orders o LEFT ANTI JOIN c ON o.customer = c.id",
        "SELECT customer FROM t.orders EXCEPT SELECT id FROM t.customers",
        "SELECT customer, (SELECT max(id) FROM t.customers) AS most FROM t.orders",
        "SELECT * FROM t.orders o JOIN (SELECT * FROM (SELECT id FROM t.customers)) c ON o.customer = c.id",
    ],
)
def test_every_table_of_a_query_is_watched(text: str) -> None:
    assert watched_tables({"t.orders": query(text)}) == ["t.customers", "t.orders"]


@pytest.mark.parametrize(
    ("name", "watched"),
    [
        ("lake.t.customers", "t.customers"),
        ("a.b.customers", "a.b.customers"),
    ],
)
def test_a_table_is_watched_by_each_name_that_spark_knows_it_by(name: str, watched: str) -> None:
    assert watched in watched_tables({"t.orders": query(f"SELECT * FROM {name}")})


def test_a_warning_is_watched_too() -> None:
    tables = {"t.orders": query("SELECT * FROM t.customers", severity="warn")}
    assert watched_tables(tables) == ["t.customers", "t.orders"]


@pytest.mark.parametrize(
    ("write", "depends"),
    [
        (SOURCE, False),
        ({**SOURCE, "mode": "overwrite"}, False),
        ({**SOURCE, "mode": "merge", "keys": ["id"]}, False),
        ({"mode": "compact"}, False),
        ({"mode": "sql", "statements": ["INSERT INTO t.orders SELECT * FROM t.customers"]}, True),
        ({**SOURCE, "transform": "SELECT * FROM source"}, False),
        ({**SOURCE, "transform": "SELECT s.* FROM source s JOIN t.customers c ON s.customer = c.id"}, True),
        ({**SOURCE, "on_conflict": "rewrite"}, True),
        ({"job": "job.py"}, True),
        ({"job": "job.py", "on_conflict": "rebase"}, False),
    ],
)
def test_a_write_that_may_have_read_a_table_that_moved_is_done_again(write: dict[str, Any], depends: bool) -> None:
    ref = RunRef(run_id="r", workflow_id="w", pipeline="p", label="p", attempt=2)
    input = RebaseBranchInput(
        run_ref=ref,
        branch=BranchRef(name="wap/p/r/a1", base="b", catalog_id="c"),
        write_result=WriteResult(head="h", tables={"t.orders": TableChange(operation="append")}),
        write=Write.model_validate(write),
        rows_quarantined=False,
        conflicts=["t.customers"],
    )
    assert bool(moved_tables_problem(input)) == depends
    assert moved_tables_problem(input.model_copy(update={"conflicts": ["t.orders"]})) == ""
