"""Importing from SodaCL: settings and alerts, none of which is dropped silently, and tables without rows."""

import sqlite3
from typing import Any

import pytest

from importing.imported import ImportedChecks, SourceText
from importing.project import Files, ImportOptions, import_files


def imported(text: str) -> ImportedChecks:
    files = Files(soda=[SourceText("checks.yml", text)])
    return import_files(files, ImportOptions(namespace="shop"), lenient=False)


def of_check(written: str) -> list[dict[str, Any]]:
    result = imported(f"checks for orders:\n  - {written}\n")
    assert not result.left, result.left
    return result.checks["shop.orders"]


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("values in (a) must exist in o (b): {warn: when > 5}", "'warn' has no equivalent here"),
        ("values in (a) must exist in o (b): {nonsense: 1}", "'nonsense' has no equivalent here"),
        ("row_count same as o: {filter: a = 1}", "'filter' has no equivalent here"),
        ("freshness(at) < 1d: {nonsense: 1}", "'nonsense' has no equivalent here"),
        ("row_count: {fail: '< 5', warn: when < 9}", "`fail: < 5` does not begin with `when`"),
        ("row_count: {fail: {when: '< 5'}}", "does not begin with `when`"),
        ("freshness(at): {fail: '> 1d', warn: when > 1h}", "`fail: > 1d` does not begin with `when`"),
        (
            "failed rows: {fail query: SELECT 1, filter: a = 1}",
            "'filter' together with `fail query` has no equivalent here",
        ),
        ("failed rows: {fail query: SELECT 1, fail condition: a = 1}", "'fail condition' has no equivalent here"),
        ("m = 0: {m query: SELECT 1, filter: a = 1}", "'filter' has no equivalent here"),
        ("m = 0: {m expression: sum(a), valid min: 1}", "'valid min' has no equivalent here"),
        ("schema: {fail: [when schema changes]}", "is not a mapping"),
        ("schema: {odd when schema changes: any}", "'odd when schema changes' has no equivalent here"),
        ("schema: {fail: {when wrong column index: {id: x}}}", "it cannot be read"),
        ("invalid_count(a) = 0: {valid min: .nan}", "is not a number"),
        ("failed rows: {fail condition: a = 'x}", "is not SQL"),
        ("values in (a + 1) must exist in o (b)", "the two lists must name equally many columns"),
    ],
)
def test_what_is_not_understood_is_listed(written: str, reason: str) -> None:
    result = imported(f"checks for orders:\n  - {written}\n  - row_count > 0\n")
    assert result.checks == {"shop.orders": [{"row_count": {"min": 1, "scope": "table"}}]}
    assert reason in result.left[0].reason


def test_with_a_threshold_there_are_no_alerts() -> None:
    assert of_check("missing_count(a) = 0: {warn: when > 5}") == [{"not_null": {"column": "a", "scope": "table"}}]


def test_freshness_without_values_fails_also_where_it_warns_of_age() -> None:
    checks = of_check("freshness(at): {warn: when > 1d}")
    assert [each["sql"].get("severity") for each in checks] == ["warn", None]
    assert checks[1]["sql"]["query"].endswith("WHERE NOT (observed IS NOT NULL)")


def test_every_alert_of_a_list_is_a_check() -> None:
    checks = of_check(
        "schema: {fail: [{when required column missing: [a]}, {when required column missing: [b]}],"
        " fail when forbidden column present: [c]}"
    )
    assert checks == [
        {"column_exists": {"columns": ["a"]}},
        {"column_exists": {"columns": ["b"]}},
        {"column_absent": {"columns": ["c"]}},
    ]


def test_names_of_columns_lose_their_quotes() -> None:
    assert of_check("""values in ("A") must exist in "o" (`B`)""") == [
        {"relationships": {"column": "A", "to": "shop.o", "field": "B", "scope": "table"}}
    ]


def test_a_reference_counts_if_one_of_its_columns_has_a_value() -> None:
    (check,) = of_check("values in (a, b) must exist in o (c, d)")
    assert check["sql"]["query"].endswith("WHERE rows.`a` IS NOT NULL OR rows.`b` IS NOT NULL")


def test_white_space_in_a_literal_is_kept_and_a_comment_is_not() -> None:
    result = imported(
        "filter orders [x]:\n  where: |\n    a = 'x  y' -- note\n    and b <> '--z'\n"
        "checks for orders [x]:\n  - row_count > 0\nfilter orders [empty]:\n  where:\n"
        "checks for orders [empty]:\n  - row_count > 1\n"
    )
    (check,) = result.checks["shop.orders"]
    lines = [line.strip() for line in check["row_count"]["where"].splitlines()]
    assert lines == ["a = 'x  y'", "and b <> '--z'"]
    assert [each.reason for each in result.left] == ["the filter 'empty' of orders is not in the file"]


@pytest.mark.parametrize(("metric", "limit"), [("duplicate_count(id)", "< 5"), ("duplicate_percent(id)", "< 5%")])
def test_a_table_without_rows_has_no_duplicates(metric: str, limit: str) -> None:
    (check,) = of_check(f"{metric} {limit}: {{filter: day = 1}}")
    query = check["sql"]["query"].replace("`shop`.`orders`", "orders")
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE orders (id, day)")
        assert connection.execute(query).fetchall() == []
        connection.executemany("INSERT INTO orders VALUES (?, 1)", [(number // 2,) for number in range(20)])
        assert connection.execute(query).fetchall() != []


def test_checks_that_are_no_list_and_settings_that_are_not_known_are_listed() -> None:
    result = imported("checks for orders:\n  row_count: 1\nconfigurations for orders:\n  valid shape for a: x\n")
    assert [(each.line, each.reason) for each in result.left] == [
        (1, "they are not a list"),
        (4, "'valid shape for a' has no equivalent here"),
    ]
