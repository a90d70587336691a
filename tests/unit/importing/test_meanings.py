"""Importing from Great Expectations: tests whose meaning differs there, in SQL or in dbt_expectations."""

import json
from typing import Any

import pytest

from importing.imported import ImportedChecks, SourceText
from importing.project import Files, ImportOptions, import_files
from sluice.errors import InvalidPipeline


def imported(*expectations: Any) -> ImportedChecks:
    files = Files(suites=[SourceText("gx/orders.json", json.dumps({"expectations": expectations}, indent=1))])
    return import_files(files, ImportOptions(table="shop.orders"), lenient=False)


def of_expectation(name: str, **arguments: Any) -> list[dict[str, Any]]:
    result = imported({"type": name, "kwargs": arguments})
    assert not result.left, result.left
    return result.checks["shop.orders"]


def expression_of(name: str, **arguments: Any) -> tuple[str, str | None]:
    (check,) = of_expectation(name, **arguments)
    return check["expression_is_true"]["expression"], check["expression_is_true"].get("where")


def query_of(name: str, **arguments: Any) -> str:
    (check,) = of_expectation(name, **arguments)
    return str(check["sql"]["query"])


def reason_of(name: str, **arguments: Any) -> str:
    result = imported({"type": name, "kwargs": arguments})
    assert not result.checks, result.checks
    return f"{'inactive: ' if result.left[0].inactive else ''}{result.left[0].reason}"


PAIR = {"column_A": "a", "column_B": "b"}
LIST = {"column_list": ["a", "b"]}


def test_a_sum_of_columns_is_that_of_each_row() -> None:
    name = "expect_multicolumn_sum_to_equal"
    good = "coalesce(coalesce(`a`, 0) + coalesce(`b`, 0) = 10, TRUE)"
    assert expression_of(name, **LIST, sum_total=10) == (good, "NOT (`a` IS NULL AND `b` IS NULL)")
    assert expression_of(name, **LIST, sum_total=10, ignore_row_if="never") == (good, None)
    assert reason_of(name, **LIST, sum_total="c") == "sum_total is not a number"


@pytest.mark.parametrize(
    "name", ["expect_multicolumn_values_to_be_unique", "expect_select_column_values_to_be_unique_within_record"]
)
def test_values_that_are_unique_in_each_row(name: str) -> None:
    good = "coalesce(NOT (`a` <=> `b`), TRUE)"
    assert expression_of(name, **LIST) == (good, "NOT (`a` IS NULL AND `b` IS NULL)")
    assert expression_of(name, **LIST, ignore_row_if="any_value_is_missing")[1] == "NOT (`a` IS NULL OR `b` IS NULL)"
    assert expression_of(name, **LIST, ignore_row_if="never") == (good, None)
    assert reason_of(name, **LIST, ignore_row_if="sometimes") == "'sometimes' is not a known value of ignore_row_if"


def test_pairs_that_are_equal_also_in_being_null() -> None:
    name = "expect_column_pair_values_to_be_equal"
    assert expression_of(name, **PAIR) == ("coalesce(`a` <=> `b`, TRUE)", "NOT (`a` IS NULL AND `b` IS NULL)")
    assert expression_of(name, **PAIR, ignore_row_if="neither") == ("coalesce(`a` <=> `b`, TRUE)", None)
    (check,) = of_expectation(name, **PAIR, ignore_row_if="either_value_is_missing")
    assert check == {"compare_columns": {"left": "a", "operator": "=", "right": "b", "scope": "table"}}


def test_pairs_of_values_that_are_in_a_set() -> None:
    expression, where = expression_of(
        "expect_column_pair_values_to_be_in_set",
        **PAIR,
        value_pairs_set=[["x", 1], ["y", None]],
        ignore_row_if="either_value_is_missing",
    )
    assert expression == "coalesce((`a` <=> 'x' AND `b` <=> 1) OR (`a` <=> 'y' AND `b` <=> NULL), TRUE)"
    assert where == "NOT (`a` IS NULL OR `b` IS NULL)"
    assert "not a list of pairs" in reason_of("expect_column_pair_values_to_be_in_set", **PAIR, value_pairs_set=[["x"]])


def test_a_share_of_pairs_is_of_those_that_are_not_left_out() -> None:
    (check,) = of_expectation("expect_column_pair_values_A_to_be_greater_than_B", **PAIR, mostly=0.9)
    assert check["compare_columns"]["where"] == "NOT (`a` IS NULL AND `b` IS NULL)"
    (check,) = of_expectation("expect_multicolumn_sum_to_equal", **LIST, sum_total=1, mostly=0.9)
    assert check["expression_is_true"]["where"] == "NOT (`a` IS NULL AND `b` IS NULL)"


def test_texts_that_are_bounds_are_values() -> None:
    maximum, between = "expect_column_max_to_be_between", "expect_column_values_to_be_between"
    assert "coalesce(observed >= '2020-01-01', FALSE)" in query_of(maximum, column="a", min_value="2020-01-01")
    assert expression_of(between, column="g", min_value="a", max_value="f") == (
        "coalesce(`g` >= 'a' AND `g` <= 'f', TRUE)",
        None,
    )
    (check,) = of_expectation(between, column="a", min_value="2020-01-01")
    assert check == {"accepted_range": {"column": "a", "min": "2020-01-01", "scope": "table"}}
    later = "2020-01-01 - interval 1 day"
    assert expression_of(between, column="a", min_value=later)[0] == f"coalesce(`a` >= '{later}', TRUE)"
    assert expression_of(between, column="a", min_value="5")[0] == "coalesce(`a` >= '5', TRUE)"


def test_texts_that_are_read_as_times() -> None:
    between, times = "expect_column_values_to_be_between", {"column": "a", "parse_strings_as_datetimes": True}
    assert expression_of(between, **times, min_value="2020-01-01")[0] == (
        "coalesce(CAST(`a` AS TIMESTAMP) >= TIMESTAMP '2020-01-01 00:00:00', TRUE)"
    )
    assert "max(CAST(`a` AS TIMESTAMP)) AS observed" in query_of(
        "expect_column_max_to_be_between", **times, max_value="2020-01-01T10:00:00"
    )
    assert "is not a valid date" in reason_of(between, **times, min_value="1.1.2020")
    assert "has no equivalent" in reason_of("expect_column_values_to_be_in_set", **times, value_set=["2020-01-01"])


@pytest.mark.parametrize("bound", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_no_bound(bound: float) -> None:
    for name in ("values_to_be_between", "max_to_be_between", "mean_to_be_between"):
        assert "is not a finite number" in reason_of(f"expect_column_{name}", column="a", min_value=bound)


def test_the_most_common_value() -> None:
    name, given = "expect_column_most_common_value_to_be_in_set", {"column": "a", "value_set": ["x", "y"]}
    assert query_of(name, **given).endswith("WHERE NOT (most_common = 1 AND matching = 1)")
    assert query_of(name, **given, ties_okay=True).endswith("WHERE NOT (matching > 0)")


def test_no_value_is_in_an_empty_set() -> None:
    assert expression_of("expect_column_values_to_be_in_set", column="a", value_set=[]) == (
        "coalesce(`a` IS NULL, TRUE)",
        None,
    )
    for name in ("values_to_not_be_in_set", "distinct_values_to_be_in_set"):
        assert reason_of(f"expect_column_{name}", column="a", value_set=[]).startswith("inactive: ")
    assert "is empty" in reason_of("expect_column_distinct_values_to_equal_set", column="a", value_set=[])


def test_an_aggregate_without_values_fails() -> None:
    query = query_of("expect_column_sum_to_be_between", column="a", min_value=0, strict_min=True)
    assert query.endswith("WHERE NOT (coalesce(observed > 0, FALSE))")


def test_another_table_is_in_the_same_namespace() -> None:
    name = "expect_table_row_count_to_equal_other_table"
    assert of_expectation(name, other_table_name="other")[0]["equal_row_count"]["to"] == "shop.other"
    assert of_expectation(name, other_table_name="raw.other")[0]["equal_row_count"]["to"] == "raw.other"
    assert "together with another table" in reason_of(name, other_table_name="other", row_condition="a = 1")


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ({"unknown_threshold": 0}, "'unknown_threshold' has no equivalent here"),
        ({"unknown": ""}, "'unknown' has no equivalent here"),
        ({"unknown": False}, "'unknown' has no equivalent here"),
        ({"strict_min": "no"}, "'strict_min' is 'no', and neither true nor false"),
        ({"strict_min": [True]}, "'strict_min' is '[True]', and neither true nor false"),
    ],
)
def test_an_argument_that_is_not_understood_is_never_ignored(argument: dict[str, Any], reason: str) -> None:
    assert reason_of("expect_column_values_to_be_between", column="a", min_value=1, **argument) == reason


def test_what_is_off_changes_nothing() -> None:
    off = {"parse_strings_as_datetimes": False, "allow_cross_type_comparisons": None, "unknown": None}
    assert of_expectation("expect_column_values_to_be_unique", column="a", **off)


def test_a_suite_that_is_nested_too_deeply_is_refused() -> None:
    files = Files(suites=[SourceText("gx/orders.json", "[" * 100_000)])
    with pytest.raises(InvalidPipeline, match=r"gx/orders\.json cannot be read"):
        import_files(files, ImportOptions(table="shop.orders"), lenient=False)


def test_what_cannot_be_read_is_listed_and_the_rest_imported() -> None:
    result = imported(
        "x",
        {"type": "expect_column_values_to_be_unique", "kwargs": ["a"]},
        {
            "type": "expect_column_quantile_values_to_be_between",
            "kwargs": {"column": "a", "quantile_ranges": {"quantiles": [0.5], "value_ranges": [[1, 2], [3, 4]]}},
        },
        {"type": "expect_column_to_exist", "kwargs": {"column": "a", "column_index": "x"}},
        {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "a"}},
    )
    assert result.checks == {"shop.orders": [{"unique": {"column": "a", "scope": "table"}}]}
    assert [each.reason.partition(":")[0] for each in result.left] == [
        "it cannot be read",
        "it cannot be read",
        "quantile_ranges is not a list of quantiles with a range for each",
        "it cannot be read",
    ]
