"""People's SQL and regular expressions: refused early, or understood alike by both engines."""

import re

import pytest

from sluice.sql.dialect import DUCKDB, SPARK, NeedsSpark
from sluice.sql.expression import columns_of, expression_problem, query_problem, tables_of, to_duckdb
from sluice.sql.regex import for_re2, problem
from sluice.sql.tokens import SqlProblem, split_statements
from sluice.sql.values import plain, typed

TYPES = {
    "a": "int",
    "b": "long",
    "x": "double",
    "f": "float",
    "s": "string",
    "d": "date",
    "n": "decimal(9, 2)",
    "o x": "int",
}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a >", "does not parse"),
        ("a = 1; DROP TABLE t", "does not parse"),
        ("a = 1 AND", "does not parse: a part is missing near"),
        ("a) OR (b", "must be one condition"),
        ("a IN (SELECT 1)", "contains a query"),
        ("sum(a) > 1", "aggregates"),
        ("a > 1 GROUP BY b", "does not parse"),
        ("", "is empty"),
    ],
)
def test_what_is_no_condition(text: str, words: str) -> None:
    assert words in str(expression_problem(text))


def test_the_columns_of_a_condition() -> None:
    assert columns_of("a > 1 AND `o x` = s OR length(s) > 3 -- b") == ["a", "o x", "s"]


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM a.b",
        "INSERT INTO a.b SELECT 1",
        "DROP TABLE a.b",
        "SELECT 1; SELECT 2",
        "SELEC 1",
        "SELECT * FROM a.`b@main`",
        "SELECT * FROM a.b VERSION AS OF 1",
        "CACHE TABLE a.b",
        "WITH x AS (SELECT 1) DELETE FROM a.b",
        "SELECT * FROM a.b WHERE",
        "MERGE INTO a.b USING c.d ON true WHEN MATCHED THEN DELETE",
        "SET spark.x = y",
        "CREATE TABLE a.b AS SELECT 1",
    ],
)
def test_a_query_only_reads_the_branch(text: str) -> None:
    assert query_problem(text)


def test_the_tables_of_a_query() -> None:
    text = "WITH own AS (SELECT * FROM a.b) SELECT * FROM own JOIN c.d ON true WHERE EXISTS (SELECT 1 FROM e.f)"
    assert query_problem(text) is None
    assert tables_of(text) == ["a.b", "c.d", "e.f"]


@pytest.mark.parametrize(
    ("text", "duckdb"),
    [
        ("a > 1", '"a" > 1'),
        ("a + b <= 5", '"a" + "b" <= 5'),
        ("`o x` IS NULL OR s = 'it\\'s'", "\"o x\" IS NULL OR \"s\" = 'it''s'"),
        ("s = 'it''s'", None),  # Spark reads two adjacent texts
        ("d >= DATE '2024-01-01'", "\"d\" >= CAST('2024-01-01' AS DATE)"),
        ("x > 0.5", '"x" > 0.5'),
        ("coalesce(a, 0) = 0", 'COALESCE("a", 0) = 0'),
        ("s IN ('a', 'b') AND NOT a BETWEEN 1 AND 2", "\"s\" IN ('a', 'b') AND NOT \"a\" BETWEEN 1 AND 2"),
        ("a % 2 = 0", None),  # if the divisor is zero, Spark fails and DuckDB returns null
        ("a / 2 > 1", None),
        ("x + 1 > 2", None),
        ("f > 0.1", None),
        ("d > '2024-01-01'", None),  # a cast
        ("s > 1", None),
        ("lower(s) = 'a'", None),
        ("A > 1", None),  # Spark ignores upper and lower case
        ("s.a = 1", None),
        ("CASE WHEN a > 1 THEN true END", None),
        ("a > 10000000000", '"a" > 10000000000'),
    ],
)
def test_only_what_means_the_same_goes_to_duckdb(text: str, duckdb: str | None) -> None:
    assert to_duckdb(text, TYPES) == duckdb


@pytest.mark.parametrize(
    ("pattern", "portable"),
    [
        ("^[A-Z]{2}-[0-9]{6}$", True),
        ("a.b", True),
        ("(?:x|y)+z?", True),
        ("^[^@\\s]+@[^@\\s]+$", True),
        ("a\\$", True),
        ("", True),
        ("a|b$", False),
        ("(?i)a", False),
        ("\\ba", False),
        ("(a)\\1", False),
        ("a++", False),
        ("[a-z&&[^b]]", False),
        ("\\p{L}", False),
        ("a$b", False),
        ("x{2000}", False),
        ("[\\d-z]", False),
        ("\\s\\h", False),
        ("(?=a)", False),
    ],
)
def test_only_patterns_that_mean_the_same_are_rewritten(pattern: str, portable: bool) -> None:
    assert (for_re2(pattern) is not None) == portable
    assert problem(pattern) is None
    if not portable:
        with pytest.raises(NeedsSpark):
            DUCKDB.matches("c", pattern)
    assert "RLIKE" in SPARK.matches("c", pattern)


@pytest.mark.parametrize("pattern", ["[a", "(a", "a)", "*a", "x{2,1}"])
def test_what_is_no_pattern_anywhere(pattern: str) -> None:
    assert "is not a regular expression" in str(problem(pattern))


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (1, "int", 1),
        (1.0, "long", 1),
        ("7", "int", 7),
        (0.1, "float", 0.10000000149011612),
        (1, "string", None),
        (True, "int", None),
        (1.5, "int", None),
        ("x", "double", None),
        (float("inf"), "double", None),
        ("2024-02-30", "date", None),
        ("2024-01-01T00:00:00Z", "timestamp", None),
        ("yes", "boolean", None),
        ("1.10", "decimal(9, 2)", "1.10"),
        (1, "list<int>", None),
    ],
)
def test_values_are_typed_by_the_column(value: bool | int | float | str, kind: str, expected: object) -> None:
    if expected is None:
        with pytest.raises(ValueError, match=r"is not|cannot be compared"):
            typed(value, kind)
    else:
        assert plain(typed(value, kind)) == expected


def test_texts_are_quoted_for_each_engine() -> None:
    nasty = "a'b\\c\n\"d"
    assert DUCKDB.text(nasty) == "'a''b\\c\n\"d'"
    assert SPARK.text(nasty) == "'a\\'b\\\\c\\n\"d'"
    assert DUCKDB.column('a"b') == '"a""b"'
    assert SPARK.column("a`b") == "`a``b`"
    assert not re.search(r"[^\\]'b", SPARK.text("a'b"))


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("", []),
        (" ;; -- nothing;\n/* ; */ ;", []),
        ("A 1", ["A 1"]),
        ("A 1;\n B 2 ; ", ["A 1", "B 2"]),
        ('A \';\' ; B `;` ; C "\\";"', ["A ';'", "B `;`", 'C "\\";"']),
        ("A /* ; /* ; */ ; */ 1; B -- ;", ["A /* ; /* ; */ ; */ 1", "B -- ;"]),
    ],
)
def test_statements_end_at_semicolons_outside_of_strings_names_and_comments(text: str, statements: list[str]) -> None:
    assert split_statements(text) == statements


def test_statements_that_spark_cannot_read_are_refused() -> None:
    with pytest.raises(SqlProblem, match="is not SQL"):
        split_statements("A 1; B ';")
