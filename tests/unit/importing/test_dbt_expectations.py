"""Importing the tests of dbt_expectations: options that change what passes."""

from typing import Any

import pytest

from importing.imported import ImportedChecks, SourceText
from importing.project import Files, ImportOptions, import_files


def imported(test: str) -> ImportedChecks:
    text = f"models:\n  - name: orders\n    tests:\n      - dbt_expectations.{test}\n"
    files = Files(dbt=[SourceText("schema.yml", text)])
    return import_files(files, ImportOptions(namespace="shop"), lenient=False)


def of_test(test: str) -> dict[str, Any]:
    result = imported(test)
    assert not result.left, result.left
    (check,) = result.checks["shop.orders"]
    return check


def reason_of(test: str) -> str:
    result = imported(test)
    assert not result.checks, result.checks
    return result.left[0].reason


def test_flags_are_those_of_every_pattern_of_a_list() -> None:
    check = of_test("expect_column_values_to_match_regex_list: {column_name: a, regex_list: [x, y], flags: i}")
    assert check["expression_is_true"]["expression"] == "coalesce((`a` RLIKE '(?i)x') OR (`a` RLIKE '(?i)y'), TRUE)"
    reason = reason_of("expect_column_values_to_match_regex_list: {column_name: a, regex_list: [x], match_on: most}")
    assert reason == "match_on is 'most', and must be any or all"


@pytest.mark.parametrize(
    ("test", "other"),
    [
        ("expect_table_row_count_to_equal_other_table", ""),
        ("expect_table_aggregation_to_equal_other_table", "expression: count(*), "),
        ("expect_column_distinct_count_to_equal_other_table", "column_name: a, "),
    ],
)
def test_a_where_is_about_the_tested_table_alone(test: str, other: str) -> None:
    given = f"{test}: {{{other}compare_model: shop.o, where: d > 1"
    query = of_test(f"{given}}}")["sql"]["query"]
    assert "`shop`.`orders` WHERE d > 1" in query and "FROM `shop`.`o` AS rows" in query
    query = of_test(f"{given}, row_condition: e > 2}}")["sql"]["query"]
    assert "`shop`.`orders` WHERE (d > 1) AND (e > 2)" in query and "`shop`.`o` WHERE e > 2" in query
    query = of_test(f"{given}, row_condition: e > 2, compare_row_condition: f > 3}}")["sql"]["query"]
    assert "`shop`.`o` WHERE f > 3" in query


def test_other_rows_of_the_same_table() -> None:
    test = "expect_table_aggregation_to_equal_other_table: {expression: count(*), compare_row_condition: f > 3"
    query = of_test(f"{test}, row_condition: e > 2}}")["sql"]["query"]
    assert "`shop`.`orders` WHERE e > 2" in query and "`shop`.`orders` WHERE f > 3" in query
    assert "without compare_model" in reason_of(f"{test}, where: d > 1}}")


def test_values_that_are_unique_in_each_row_are_no_nulls() -> None:
    test = "expect_select_column_values_to_be_unique_within_record: {column_list: [a, b]"
    check = of_test(f"{test}}}")["expression_is_true"]
    assert check["expression"] == "coalesce(coalesce(`a` <> `b`, FALSE), TRUE)"
    assert check["where"] == "NOT (`a` IS NULL AND `b` IS NULL)"
    check = of_test(f"{test}, ignore_row_if: any_value_is_missing}}")["expression_is_true"]
    assert check["where"] == "NOT (`a` IS NULL OR `b` IS NULL)"
    assert "is not a known value of ignore_row_if" in reason_of(f"{test}, ignore_row_if: sometimes}}")
    assert "a known value" in reason_of("expect_compound_columns_to_be_unique: {column_list: [a], ignore_row_if: x}")


def test_pairs_of_values_are_written_into_sql_as_they_are() -> None:
    test = "expect_column_pair_values_to_be_in_set: {column_A: a, column_B: b, value_pairs_set"
    check = of_test(f"""{test}: [[0, "'x'"]]}}""")
    assert check["expression_is_true"]["expression"] == "coalesce((`a` = 0 AND `b` = 'x'), TRUE)"
    assert "is an expression" in reason_of(f"{test}: [[0, x]]}}")


def test_the_value_that_is_common_in_its_turn() -> None:
    test = "expect_column_most_common_value_to_be_in_set: {column_name: a, value_set: [x]"
    assert "WHERE place = 2 AND member NOT IN ('x')" in of_test(f"{test}, top_n: 2}}")["sql"]["query"]
    assert reason_of(f"{test}, top_n: x}}") == "top_n is not a whole number"


def test_only_a_whole_text_is_a_date() -> None:
    test = "expect_column_values_to_be_between: {column_name: a, min_value"
    check = of_test(f"{test}: '2020-01-01 - interval 1 day'}}")
    assert check["expression_is_true"]["expression"] == "coalesce(`a` >= (2020-01-01 - interval 1 day), TRUE)"
    assert of_test(f"{test}: '2020-01-01 10:00'}}")["accepted_range"]["min"] == "2020-01-01 10:00"
    for number in (".nan", ".inf"):
        assert "is not a finite number" in reason_of(f"{test}: {number}}}")


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("strictly: maybe", "'strictly' is 'maybe', and neither true nor false"),
        ("unknown_threshold: 0", "'unknown_threshold' has no equivalent here"),
        ("unknown: false", "'unknown' has no equivalent here"),
        ("unknown: ''", "'unknown' has no equivalent here"),
    ],
)
def test_an_argument_that_is_not_understood_is_never_ignored(argument: str, reason: str) -> None:
    assert reason_of(f"expect_column_values_to_be_between: {{column_name: a, min_value: 1, {argument}}}") == reason


def test_an_empty_set_is_no_test() -> None:
    assert (
        reason_of("expect_column_values_to_be_in_set: {column_name: a, value_set: []}") == "the set of values is empty"
    )


def checks_of(test: str) -> list[dict[str, Any]]:
    result = imported(test)
    assert not result.left, result.left
    return result.checks["shop.orders"]


@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        ("expect_column_values_to_be_in_set", {}),
        ("expect_column_distinct_values_to_be_in_set", {}),
        ("expect_column_distinct_values_to_equal_set", {"all_present": True}),
    ],
)
def test_a_null_is_not_in_a_set(name: str, accepted: dict[str, Any]) -> None:
    """dbt_expectations joins the values with the set, and a null has no match."""
    test = f"{name}: {{column_name: a, value_set: [x, y]"
    assert checks_of(f"{test}}}") == [
        {"not_null": {"column": "a", "scope": "table"}},
        {"accepted_values": {"column": "a", "values": ["x", "y"], "scope": "table", **accepted}},
    ]
    (check,) = checks_of(f"{test}, config: {{severity: warn, warn_if: '> 3'}}}}")
    assert "WHERE NOT coalesce(`a` IN ('x', 'y'), FALSE)" in check["sql"]["query"]
    assert ("SELECT DISTINCT" in check["sql"]["query"]) == ("distinct" in name)
