"""The query by which a person finds the bad rows of a check returns exactly these rows."""

from typing import Any

import duckdb
import pytest

from engine.queries.sql import tables_in
from sluice.audit.bad_rows_query import bad_rows_query
from sluice.checks.base import Evaluation, pass_or_fail
from sluice.checks.results import AnswerSource, check_result
from sluice.checks.verdicts import BadRowsQuery, short_verdicts, verdicts_digest
from tests.harness.audited_table import check_of

TYPES = {"id": "int", "label": "string", "price": "double", "day": "date", "o'x.\"y": "int"}
ROWS = [
    (1, "a", 1.5, "2026-01-01", 1),
    (2, "b'; DROP", -2.0, "2026-01-02", None),
    (2, "a", 0.5, "2026-01-04", 3),
    (None, "", float("nan"), "2026-01-05", 4),
    (None, None, None, None, 5),
    (7, "a", 9.0, "2026-01-06", 6),
]
FAILED = pass_or_fail(False, 1, 1)


@pytest.fixture
def shop() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE SCHEMA shop; CREATE TABLE shop.known (id INT); INSERT INTO shop.known VALUES (1), (2)")
    connection.execute('CREATE TABLE shop.orders (id INT, label TEXT, price DOUBLE, day DATE, "o\'x.""y" INT)')
    connection.executemany("INSERT INTO shop.orders VALUES (?, ?, ?, ?, ?)", ROWS)
    return connection


def query_of(written: Any, evaluation: Evaluation = FAILED, table: str = "shop.orders") -> BadRowsQuery | None:
    return bad_rows_query(table, check_of(written), TYPES, evaluation)


CASES: list[tuple[Any, list[int]]] = [
    ({"not_null": "id"}, [3, 4]),
    ({"not_null": {"column": "id", "where": "price IS NOT NULL"}}, [3]),
    ({"not_null": "o'x.\"y"}, [1]),
    ({"not_null_proportion": {"column": "label", "min": 1}}, [4]),
    ({"accepted_range": {"column": "price", "min": 0}}, [1, 3]),
    ({"accepted_range": {"column": "day", "max": "2026-01-04"}}, [3, 5]),
    ({"accepted_values": {"column": "label", "values": ["a", ""]}}, [1]),
    ({"not_accepted_values": {"column": "label", "values": ["b'; DROP"]}}, [1]),
    ({"string_length": {"column": "label", "min": 1, "max": 3, "where": "id IS NULL"}}, [3]),
    ({"match_regex": {"column": "label", "pattern": "^[a-z]?$"}}, [1]),
    ({"expression_is_true": "price > 0"}, [1, 4]),
    ({"compare_columns": {"left": "id", "operator": "<=", "right": "o'x.\"y"}}, [5]),
    ({"unique": "id"}, [1, 2]),
    ({"unique": {"column": "label", "where": "id > 1"}}, [2, 5]),
    ({"unique": {"column": "label", "scope": "table"}}, [0, 2, 5]),
    ({"unique_combination_of_columns": {"columns": ["label", "label"]}}, [0, 2, 5]),
    ({"relationships": {"column": "id", "to": "shop.known", "field": "id"}}, [5]),
]


@pytest.mark.parametrize(("written", "bad"), CASES)
def test_it_returns_the_bad_rows(shop: duckdb.DuckDBPyConnection, written: Any, bad: list[int]) -> None:
    query = query_of(written)
    assert query is not None and query.dialect == "duckdb"
    rows = shop.execute(query.sql).fetchall()
    assert sorted(map(numbered, rows)) == bad
    assert set(tables_in(query.sql)) <= {"shop.orders", "shop.known"}, "`query` accepts it"


def numbered(row: tuple[Any, ...]) -> int:
    """Return the number of a row, whose last column or label identifies it."""
    return 1 if row[4] is None else int(row[4]) - 1


def test_groups_that_are_no_rows_are_returned_as_they_are(shop: duckdb.DuckDBPyConnection) -> None:
    query = query_of({"sequential_values": {"column": "day", "datepart": "day"}})
    assert query is not None
    assert [str(day) for day, _ in shop.execute(query.sql).fetchall()] == ["2026-01-04"]


def test_what_duckdb_cannot_express_is_in_spark_sql() -> None:
    own = query_of({"sql": {"query": "SELECT id FROM shop.orders WHERE price < 0"}})
    assert own == BadRowsQuery(sql="SELECT id FROM shop.orders WHERE price < 0", dialect="spark")
    looks_back = query_of({"match_regex": {"column": "label", "pattern": "(?<=a)b"}}, table="lake.shop.orders")
    assert looks_back and looks_back.dialect == "spark" and "FROM `lake`.`shop`.`orders`" in looks_back.sql


def test_a_namespace_with_dots_is_one_name_to_duckdb() -> None:
    query = query_of({"not_null": "id"}, table="lake.shop.orders")
    assert query and 'FROM "lake.shop"."orders"' in query.sql
    assert tables_in(query.sql) == ["lake.shop.orders"]


@pytest.mark.parametrize(
    ("written", "evaluation"),
    [
        ({"not_null": "id"}, pass_or_fail(True, 0, 0)),
        ({"row_count": {"min": 5}}, pass_or_fail(False, 4)),
        ({"accepted_values": {"column": "id", "values": [9], "all_present": True}}, pass_or_fail(False, "", 0)),
        ({"relationships": {"column": "id", "to": "shop.known", "field": "id", "ref": "main"}}, FAILED),
        ({"column_exists": "id"}, FAILED),
    ],
)
def test_nothing_is_offered_if_no_query_finds_rows(written: Any, evaluation: Evaluation) -> None:
    assert query_of(written, evaluation) is None


def test_a_query_changes_no_digest_and_is_left_out_where_there_is_no_room() -> None:
    """Approvals name the digest, and a part of a query would find other rows."""
    check = check_of({"not_null": "id"})
    plain = check_result("shop.orders", 0, check, FAILED, AnswerSource("duckdb"))
    queried = plain.model_copy(update={"bad_rows_query": query_of({"not_null": "id"})})
    assert verdicts_digest([queried]) == verdicts_digest([plain])
    assert short_verdicts([queried], 1) == [queried]
    assert short_verdicts([queried], 50_000)[0].bad_rows_query is None
