"""Importing from Great Expectations: unusual names of columns, and values of other types."""

import json
from typing import Any

import pytest

from importing.imported import ImportedChecks, SourceText
from importing.project import Files, ImportOptions, import_files


def imported(*expectations: Any) -> ImportedChecks:
    text = json.dumps({"name": {"odd": 1}, "expectation_suite_name": "orders", "expectations": expectations})
    files = Files(suites=[SourceText("gx/orders.json", text)])
    return import_files(files, ImportOptions(namespace="shop"), lenient=True)


@pytest.mark.parametrize(
    ("name", "arguments", "check"),
    [
        (
            "expect_column_quantile_values_to_be_between",
            {"column": "My Col", "quantile_ranges": {"quantiles": [0.5], "value_ranges": [[1, 2]]}},
            {"quantile_in_range": {"column": "My Col", "quantile": 0.5, "min": 1, "max": 2, "scope": "table"}},
        ),
        (
            "expect_table_columns_to_match_ordered_list",
            {"column_list": ["My Col", "b"]},
            {"column_names": {"columns": ["My Col", "b"], "ordered": True, "scope": "table"}},
        ),
    ],
)
def test_a_name_with_a_space_has_no_quotes_in_a_check(name: str, arguments: dict[str, Any], check: Any) -> None:
    result = imported({"type": name, "kwargs": arguments})
    assert not result.left
    assert result.checks == {"shop.orders": [check]}


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("x", "an expectation and its `kwargs` are mappings"),
        (None, "an expectation and its `kwargs` are mappings"),
        ({"type": "expect_column_to_exist", "kwargs": ["a"]}, "an expectation and its `kwargs` are mappings"),
        ({"type": "expect_column_to_exist", "kwargs": {"column": ["a"]}}, "'column' is not text: ['a']"),
        ({"type": "expect_column_to_exist", "kwargs": {"column": "a", "column_index": "x"}}, "it cannot be read"),
        (
            {"type": "expect_column_pair_values_to_be_equal", "kwargs": {"column_A": "a", "column_B": {"b": 1}}},
            "'column_b' is not text: {'b': 1}",
        ),
        (
            {"type": "expect_column_values_to_match_regex", "kwargs": {"column": "a", "regex": ["x"]}},
            "'regex' is not text: ['x']",
        ),
        (
            {"type": "expect_compound_columns_to_be_unique", "kwargs": {"column_list": ["a", ["b"]]}},
            "'column_list' is not a list of names: ['a', ['b']]",
        ),
        (
            {"type": "expect_column_distinct_values_to_equal_set", "kwargs": {"column": "a", "value_set": [[1]]}},
            "it cannot be read",
        ),
        (
            {
                "type": "expect_column_quantile_values_to_be_between",
                "kwargs": {"column": "a", "quantile_ranges": {"quantiles": [0.1, 0.2], "value_ranges": [[1, 2]]}},
            },
            "quantile_ranges is not a list of quantiles with a range for each",
        ),
    ],
)
def test_a_value_of_another_type_is_listed_and_the_rest_is_imported(written: Any, reason: str) -> None:
    result = imported(written, {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "a"}})
    assert result.checks == {"shop.orders": [{"unique": {"column": "a", "scope": "table"}}]}
    assert [reason in each.reason for each in result.left] == [True]


def test_comparisons_between_types_are_those_of_the_spark_engine() -> None:
    kwargs = {"column": "a", "min_value": 0, "allow_cross_type_comparisons": True, "output_strftime_format": "%Y"}
    result = imported({"type": "expect_column_values_to_be_between", "kwargs": kwargs})
    assert result.checks == {"shop.orders": [{"accepted_range": {"column": "a", "min": 0, "scope": "table"}}]}


def test_an_odd_pair_compares_nulls_as_values() -> None:
    kwargs = {"column_A": "a", "column_B": "b", "value_pairs_set": [[3, None]], "ignore_row_if": "neither"}
    result = imported({"type": "expect_column_pair_values_to_be_in_set", "kwargs": kwargs})
    expression = "coalesce((`a` <=> 3 AND `b` <=> NULL), TRUE)"
    assert result.checks == {"shop.orders": [{"expression_is_true": {"expression": expression, "scope": "table"}}]}
