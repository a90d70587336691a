"""Queries of users are counted many at a time, and each has an answer or an error of its own."""

from typing import Any

from sluice.audit.query_builder import AuditQuery
from sluice.checks.base import CheckQuery
from sluice.sql.dialect import SPARK


class Engine:
    """An engine for queries of the form `SELECT … FROM rows_N`, which return N rows. A query with `wrong` fails."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def run(self, sql: str) -> list[dict[str, Any]]:
        self.asked.append(sql)
        if "wrong" in sql:
            raise ValueError("no such table")
        counts = [int(part.split("rows_")[1].split()[0]) for part in sql.split(" UNION ALL ")]
        if "LIMIT" in sql:
            return [{"id": 1}]
        return [{"sluice_query": number, "n": count} for number, count in enumerate(counts)]


def answered(*tables: str) -> tuple[list[int | str], int]:
    """Return the number of bad rows of each query, or its error, and the number of queries that the engine ran."""
    engine = Engine()
    queries = {f"k{number}": CheckQuery(user_query=f"SELECT * FROM {table}") for number, table in enumerate(tables)}
    audit = AuditQuery(engine.run, SPARK, {}, queries, False, 5, error_message=str)
    answers = audit.answers()
    return [answers[key].error or answers[key].metrics["failed"] for key in queries], len(engine.asked)


def test_many_queries_are_counted_at_once() -> None:
    assert answered(*["rows_0"] * 40) == ([0] * 40, 3)
    assert answered("rows_0", "rows_7", "rows_0") == ([0, 7, 0], 2), "the sample of bad rows is a query of its own"
    assert answered("rows_3") == ([3], 2)


def test_a_query_that_fails_leaves_the_others_their_answers() -> None:
    assert answered("rows_0", "wrong", "rows_2") == ([0, "no such table", 2], 5)
