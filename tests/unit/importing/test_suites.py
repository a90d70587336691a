"""Importing from Great Expectations, and recognising the kind of a file."""

import json
from typing import Any

import pytest

from importing.imported import ImportedChecks, SourceText
from importing.project import Files, ImportOptions, import_files, sort_files
from sluice.errors import InvalidPipeline


def imported(*expectations: dict[str, Any], **options: Any) -> ImportedChecks:
    text = json.dumps({"name": "orders.warning", "expectations": expectations}, indent=1)
    files = Files(suites=[SourceText("gx/orders.json", text)])
    return import_files(files, ImportOptions(**{"namespace": "shop", **options}), lenient=False)


def of_expectation(name: str, **arguments: Any) -> list[dict[str, Any]]:
    result = imported({"type": name, "kwargs": arguments}, table="shop.orders")
    assert not result.left, result.left
    return result.checks["shop.orders"]


@pytest.mark.parametrize(
    ("name", "arguments", "check"),
    [
        (
            "expect_column_values_to_be_between",
            {"column": "a", "min_value": 0, "mostly": 0.9},
            {"accepted_range": {"column": "a", "min": 0, "scope": "table", "where": "`a` IS NOT NULL", "mostly": 0.9}},
        ),
        (
            "ExpectColumnValuesToNotBeNull",
            {"column": "a", "mostly": 0.9},
            {"not_null": {"column": "a", "scope": "table", "mostly": 0.9}},
        ),
        (
            "expect_column_pair_values_A_to_be_greater_than_B",
            {"column_A": "a", "column_B": "b", "or_equal": True},
            {"compare_columns": {"left": "a", "operator": ">=", "right": "b", "scope": "table"}},
        ),
        (
            "expect_column_values_to_be_between",
            {"column": "Order ID", "min_value": 0, "strict_min": True, "max_value": None},
            {"accepted_range": {"column": "Order ID", "min": 0, "inclusive": False, "scope": "table"}},
        ),
        ("expect_table_row_count_to_equal", {"value": 3}, {"row_count": {"min": 3, "max": 3, "scope": "table"}}),
        (
            "expect_column_to_exist", {"column": "a", "column_index": 0},
            {"column_exists": {"columns": ["a"], "position": 1, "scope": "table"}},
        ),
        (
            "expect_table_columns_to_match_set", {"column_set": ["a", "b"], "exact_match": True},
            {"column_names": {"columns": ["a", "b"], "scope": "table"}},
        ),
        (
            "expect_column_values_to_be_in_type_list", {"column": "a", "type_list": ["INTEGER", "int64", "Odd"]},
            {"column_type": {"column": "a", "type": ["int", "long"], "scope": "table"}},
        ),
        (
            "expect_column_median_to_be_between", {"column": "a", "min_value": 1},
            {"quantile_in_range": {"column": "a", "min": 1, "quantile": 0.5, "scope": "table"}},
        ),
        (
            "expect_column_values_to_not_match_regex_list", {"column": "a", "regex_list": ["x", "y"]},
            {
                "expression_is_true": {
                    "expression": "coalesce((NOT `a` RLIKE 'x') AND (NOT `a` RLIKE 'y'), TRUE)", "scope": "table",
                }
            },
        ),
        (
            "expect_column_values_to_be_in_set",
            {"column": "a", "value_set": ["x"], "row_condition": 'col("b").notNull()',
             "condition_parser": "great_expectations"},
            {"accepted_values": {"column": "a", "values": ["x"], "where": "`b` IS NOT NULL", "scope": "table"}},
        ),
    ],
)  # fmt: skip
def test_an_expectation_becomes_the_check_of_the_same_meaning(
    name: str, arguments: dict[str, Any], check: dict[str, Any]
) -> None:
    assert of_expectation(name, **arguments) == [check]


def test_quantiles_are_a_check_each() -> None:
    checks = of_expectation(
        "expect_column_quantile_values_to_be_between",
        column="a",
        quantile_ranges={"quantiles": [0.1, 0.9], "value_ranges": [[1, 2], [3, None]]},
    )
    assert [each["quantile_in_range"] for each in checks] == [
        {"column": "a", "quantile": 0.1, "min": 1, "max": 2, "scope": "table"},
        {"column": "a", "quantile": 0.9, "min": 3, "scope": "table"},
    ]


def test_rows_of_a_query() -> None:
    (check,) = of_expectation("unexpected_rows_expectation", unexpected_rows_query="SELECT * FROM {batch} WHERE a < 0")
    assert check["sql"]["query"] == "SELECT * FROM `shop`.`orders` WHERE a < 0"


def test_what_is_not_carried_over_has_its_line_and_reason() -> None:
    result = imported(
        {"type": "expect_column_kl_divergence_to_be_less_than", "kwargs": {"column": "a"}},
        {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "a"}, "severity": "warning"},
        {"type": "expect_column_max_to_be_between", "kwargs": {"column": "a"}},
        {"type": "expect_column_max_to_be_between", "kwargs": {"column": "a", "max_value": {"$PARAMETER": "now()"}}},
        {"type": "expect_column_values_to_be_unique",
         "kwargs": {"column": "a", "row_condition": "a == 1 & b", "condition_parser": "pandas"}},
        {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "a", "min_value": 1, "mostly": 0.5}},
    )  # fmt: skip
    assert result.checks == {"shop.orders_warning": [{"unique": {"column": "a", "severity": "warn", "scope": "table"}}]}
    assert [each.line for each in result.left] == sorted({each.line for each in result.left})
    assert [(each.reason, each.inactive) for each in result.left] == [
        ("there is no equivalent of expect_column_kl_divergence_to_be_less_than", False),
        ("it has neither min_value nor max_value, and always passes", True),
        ("'max_value' is computed when the suite runs", False),
        ("the row_condition is code for pandas, not SQL", False),
        ("`mostly` has no equivalent for this expectation here", False),
    ]


def test_a_table_is_asked_for() -> None:
    with pytest.raises(InvalidPipeline, match=r"--table namespace\.table"):
        imported(namespace=None)


def test_files_are_told_apart_by_their_content() -> None:
    files = sort_files(
        [
            SourceText("a/models/schema.yml", "version: 2\nmodels:\n- name: x\n"),
            SourceText("a/soda/checks.yml", "# note\nchecks for x:\n- row_count > 0\n"),
            SourceText("a/soda/quoted.yml", '"checks for x":\n- row_count > 0\n'),
            SourceText("a/gx/x.json", '{"expectations": []}'),
            SourceText("a/other.json", "{}"),
            SourceText("a/docker-compose.yml", "services: {}\n"),
            SourceText("a/macros/m.sql", "select 1"),
            SourceText("a/tests/generic/g.sql", "{% test t(model) %}{% endtest %}"),
            SourceText("a/tests/singular.sql", "select 1"),
            SourceText("a/models/m.sql", "select 1"),
            SourceText("a/dbt_project.yml", "name: a\nmodels: {}\n"),
        ]
    )
    assert {name: [each.path for each in listed] for name, listed in vars(files).items()} == {
        "dbt": ["a/models/schema.yml"],
        "soda": ["a/soda/checks.yml", "a/soda/quoted.yml"],
        "suites": ["a/gx/x.json"],
        "macros": ["a/macros/m.sql", "a/tests/generic/g.sql"],
        "singular": ["a/tests/singular.sql"],
        "projects": ["a/dbt_project.yml"],
        "others": ["a/other.json", "a/docker-compose.yml", "a/models/m.sql"],
        "unread": [],
    }
