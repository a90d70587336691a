"""Rows of quarantine tables, as `quarantine list` and `show` read them, and the sentences about them."""

import asyncio
from typing import cast

import pytest
from temporalio.client import Client

from engine.queries.sql import tables_in
from runtime.quarantine.quarantined_rows import (
    QuarantinedRows,
    duckdb_table,
    duckdb_text,
    list_quarantined_rows,
    show_quarantined_rows,
    with_new_values,
)
from sluice.contracts.lake_queries import QueryRows, QueryTablesInput
from sluice.errors import InvalidInput
from sluice.publishing.bad_rows import add_bad_rows, add_broken_checks, describe_above_cap, describe_bad_rows
from sluice.settings import Settings
from tests.harness.lake_client import LakeClient


class Lake(LakeClient):
    """A lake with three quarantine tables, one of them foreign to Sluice. It keeps the queries that it gets."""

    def __init__(self) -> None:
        super().__init__({"query_tables": self._answer})
        self.queries: list[str] = []

    def _answer(self, query: QueryTablesInput) -> QueryRows:
        sql = query.sql
        self.queries.append(sql)
        if sql == "SHOW TABLES":
            names = ["shop.orders", "shop.orders__quarantine", "shop.eu.rides__quarantine", "x.foreign__quarantine"]
            return QueryRows(columns=["name"], rows=[[name] for name in names])
        if "foreign" in sql:
            raise InvalidInput("there is no column quarantined_run")
        if "unnest" in sql:
            return QueryRows(columns=["title", "n"], rows=[["not_null(id)", 2]] if "orders" in sql else [])
        if "GROUP BY quarantined_run" in sql:
            day = "2026-11-22" if "orders" in sql else "2026-11-23"
            return QueryRows(columns=["run", "at", "rows"], rows=[["r1", day, 2]])
        return QueryRows(columns=["count"], rows=[[2]])


@pytest.fixture
def lake() -> Lake:
    return Lake()


def test_a_table_that_cannot_be_read_hides_no_other(lake: Lake) -> None:
    listed, problems = asyncio.run(list_quarantined_rows(cast(Client, lake), Settings().installation))
    assert listed == [
        QuarantinedRows("shop.eu.rides", "r1", "2026-11-23", 2),
        QuarantinedRows("shop.orders", "r1", "2026-11-22", 2),
    ]
    assert problems == ["x.foreign__quarantine: there is no column quarantined_run"]
    assert any('FROM "shop.eu"."rides__quarantine" GROUP' in sql for sql in lake.queries)


def test_the_rows_of_a_table_and_of_a_run(lake: Lake) -> None:
    (shown,) = asyncio.run(show_quarantined_rows(cast(Client, lake), Settings().installation, "shop.orders", 3))
    assert (shown.table, shown.rows, shown.checks, shown.run_id) == ("shop.orders", 2, {"not_null(id)": 2}, "")
    assert lake.queries[-1].endswith("LIMIT 3") and not any("WHERE" in sql for sql in lake.queries)


def test_a_name_is_a_value_of_the_query_and_no_part_of_it() -> None:
    hostile = "x' UNION ALL SELECT secret FROM shop.secrets -- \\' "
    assert tables_in(f"SELECT 1 FROM {duckdb_table('a.b.c')} WHERE r = {duckdb_text(hostile)}") == ["a.b.c"]


def test_a_preview_has_the_old_value_beside_the_new_one() -> None:
    preview = QueryRows(columns=["id", "v", "new v"], rows=[[1, -3, 3], [2, None, 0], [3, 5, 5]])
    assert with_new_values(preview) == QueryRows(columns=["id", "v"], rows=[[1, "-3 -> 3"], [2, "null -> 0"], [3, 5]])


def test_the_sentences_about_bad_rows() -> None:
    broken = {"t.x": {"not_null(id)": 1_200, "unique(k)": 3}}
    assert describe_bad_rows({"t.x": 1_201}, broken) == (
        "1,201 bad rows of t.x went to t.x__quarantine (not_null(id) 1,200, unique(k) 3)"
    )
    assert describe_bad_rows({"t.x": 1}, {}) == "1 bad row of t.x went to t.x__quarantine"
    many = {"t.x": {f"sql({number})": 1 for number in range(7)}}
    assert describe_bad_rows({"t.x": 7}, many).endswith("sql(4) 1, and 2 more checks)")
    above = "more bad rows than the pipeline allows to quarantine: 9 of t.x"
    assert describe_above_cap({"t.x": 9}, {"t.x": 3}, {}) == f"{above} (the pipeline allows 3)"
    assert describe_above_cap({"t.x": 7}, {"t.x": 1}, {"t.x": 2}) == f"{above} (the pipeline allows 3)"
    assert describe_above_cap({"t.x": 9}, {"t.x": None}, {}) == above


def test_the_bad_rows_of_two_audits_are_added() -> None:
    assert add_bad_rows({"t.x": 1, "t.y": 2}, {"t.x": 3, "t.z": 4}) == {"t.x": 4, "t.y": 2, "t.z": 4}
    first, second = {"t.x": {"not_null(id)": 1}}, {"t.x": {"not_null(id)": 2, "unique(k)": 3}}
    assert add_broken_checks(first, second) == {"t.x": {"not_null(id)": 3, "unique(k)": 3}}
