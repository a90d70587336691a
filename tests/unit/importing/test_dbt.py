"""Importing from dbt: property files, and the tests that a project defines itself."""

from typing import Any

import pytest

from sluice.errors import InvalidPipeline
from tests.harness.imported_dbt import imported, reasons


def of_column(tests: str) -> list[dict[str, Any]]:
    """Import tests of one column, assert that none is left out, and return the checks."""
    result = imported(f"models:\n  - name: orders\n    columns:\n      - name: amount\n        tests: [{tests}]\n")
    assert not result.left, result.left
    return result.checks["shop.orders"]


def of_table(tests: str) -> list[dict[str, Any]]:
    result = imported(f"models:\n  - name: orders\n    tests: [{tests}]\n")
    assert not result.left, result.left
    return result.checks["shop.orders"]


@pytest.mark.parametrize(
    ("written", "check"),
    [
        ("not_null", {"not_null": {"column": "amount", "scope": "table"}}),
        (
            "{unique: {config: {severity: WARN}}}",
            {"unique": {"column": "amount", "severity": "warn", "scope": "table"}},
        ),
        (
            "{accepted_values: {values: [1, 2], quote: false}}",
            {"accepted_values": {"column": "amount", "values": [1, 2], "scope": "table"}},
        ),
        (
            "{accepted_values: {arguments: {values: ['1', 'true'], quote: false}}}",
            {"accepted_values": {"column": "amount", "values": [1, True], "scope": "table"}},
        ),
        (
            "{relationships: {to: ref('states'), field: name, config: {where: 'id > 3'}}}",
            {
                "relationships": {
                    "column": "amount", "to": "shop.states", "field": "name", "where": "id > 3", "scope": "table",
                }
            },
        ),
        (
            "{relationships: {to: \"{{ source('raw', 'states') }}\", field: name}}",
            {"relationships": {"column": "amount", "to": "raw.states", "field": "name", "scope": "table"}},
        ),
        (
            "{not_null: {config: {warn_if: '>10', error_if: '>100'}}}",
            {"not_null": {"column": "amount", "fail_if": "> 100", "warn_if": "> 10", "scope": "table"}},
        ),
        (
            "{dbt_utils.accepted_range: {min_value: 0, inclusive: false}}",
            {"accepted_range": {"column": "amount", "min": 0, "inclusive": False, "scope": "table"}},
        ),
        (
            "{dbt_expectations.expect_column_values_to_be_between: {min_value: 1, max_value: \"{{ 2 * 3 }}\"}}",
            {"accepted_range": {"column": "amount", "min": 1, "max": 6, "scope": "table"}},
        ),
        (
            "{dbt_utils.expression_is_true: {expression: '>= 0'}}",
            {"expression_is_true": {"expression": "coalesce((`amount` >= 0), TRUE)", "scope": "table"}},
        ),
        ("elementary.schema_changes", {"schema_drift": {"scope": "table"}}),
    ],
)  # fmt: skip
def test_a_test_becomes_the_check_of_the_same_meaning(written: str, check: dict[str, Any]) -> None:
    assert of_column(written) == [check]


def test_an_error_level_alone_still_warns_at_one_bad_row_as_in_dbt() -> None:
    """dbt warns from the first failure on, unless `warn_if` states otherwise. A `warn_if` alone changes nothing."""
    assert of_column("{not_null: {error_if: '>100'}}")[0]["not_null"]["warn_if"] == "> 0"
    assert of_column("{not_null: {warn_if: '>100'}}") == [{"not_null": {"column": "amount", "scope": "table"}}]
    assert of_column("{not_null: {severity: warn, warn_if: '>100'}}") == [
        {"not_null": {"column": "amount", "severity": "warn", "warn_if": "> 100", "scope": "table"}}
    ]


def test_a_threshold_that_asks_for_failures_becomes_a_query_that_counts_them() -> None:
    failing, warning = of_column("{dbt_expectations.expect_column_values_to_match_regex: {regex: '^a', error_if: '=0',"
                                 " warn_if: '<4'}}")  # fmt: skip
    assert "WHERE failures = 0" in failing["sql"]["query"]
    assert "NOT (`amount` RLIKE '^a')" in failing["sql"]["query"]
    assert warning["sql"]["severity"] == "warn"
    assert warning["sql"]["query"].endswith("WHERE failures < 4 AND NOT (failures = 0)")


def test_a_condition_of_the_test_and_one_of_its_settings_both_hold() -> None:
    (check,) = of_column(
        "{dbt_utils.relationships_where: {to: ref('b'), field: id, from_condition: a > 1, config: {where: c > 2}}}"
    )
    assert check["relationships"]["where"] == "(c > 2) AND (a > 1)"
    (check,) = of_column("{dbt_utils.expression_is_true: {expression: '> 0', condition: a > 1, where: c > 2}}")
    assert "WHERE (c > 2) AND (a > 1)" in check["sql"]["query"]


def test_a_group_makes_a_query() -> None:
    (check,) = of_table("{dbt_expectations.expect_table_row_count_to_be_between: {min_value: 10, group_by: [day]}}")
    assert check["sql"]["query"] == (
        "SELECT * FROM (SELECT `day`, count(*) AS observed FROM `shop`.`orders` AS rows GROUP BY `day`) AS measured "
        "WHERE NOT (observed >= 10)"
    )


def test_an_expression_in_place_of_a_column_is_no_name() -> None:
    (check,) = of_table("{unique: {column_name: 'lower(email)'}}")
    assert "GROUP BY (lower(email))" in check["sql"]["query"]
    (check,) = of_table("{not_null: {column_name: 'a || b'}}")
    assert check["expression_is_true"]["expression"] == "coalesce((a || b) IS NOT NULL, TRUE)"


def test_a_column_with_spaces_is_a_name() -> None:
    result = imported("models: [{name: o, columns: [{name: Order ID, tests: [not_null]}]}]")
    assert result.checks == {"shop.o": [{"not_null": {"column": "Order ID", "scope": "table"}}]}


def test_all_forms_in_which_a_test_may_be_written() -> None:
    result = imported(
        """
models:
  - name: orders
    columns:
      - name: id
        data_tests:
          - not_null
          - name: my_name
            test_name: accepted_values
            values: [1]
          - unique:
            severity: warn
          - not_null:
              arguments: {config: {where: a > 1}}
          - unique: [a, b]
          - not_null: {}
            unique: {}
"""
    )
    assert result.checks["shop.orders"] == [
        {"not_null": {"column": "id", "scope": "table"}},
        {"accepted_values": {"column": "id", "values": [1], "scope": "table"}},
        {"unique": {"column": "id", "severity": "warn", "scope": "table"}},
        {"not_null": {"column": "id", "where": "a > 1", "scope": "table"}},
    ]
    assert reasons(result) == [
        "15: shop.orders.id: unique: the arguments of a test must be a mapping, not \"['a', 'b']\"",
        "16: shop.orders.id: not_null: 'unique' is on the level of the test's name: indent it below the name",
    ]


def test_everything_that_is_not_carried_over_is_listed_with_its_line() -> None:
    result = imported(
        """
models:
  - name: orders
    tests:
      - elementary.volume_anomalies
      - dbt_utils.equality: {compare_model: ref('b'), precision: 2}
      - dbt_utils.accepted_range: {column_name: a, min_value: 1, odd: 2}
    columns:
      - name: id
        tests:
          - not_null: {where: "__recent__"}
          - not_null: {severity: fatal}
          - relationships: {to: ref('b')}
unit_tests:
  - name: t
    model: orders
"""
    )
    assert reasons(result) == [
        "5: shop.orders: elementary.volume_anomalies: the package elementary has no equivalent here for "
        "volume_anomalies",
        "6: shop.orders: dbt_utils.equality: `precision` without `compare_columns` needs the columns of the table: "
        "list them",
        "7: shop.orders: dbt_utils.accepted_range: 'odd' has no equivalent here",
        "11: shop.orders.id: not_null: __recent__ is replaced by a macro of the project",
        "12: shop.orders.id: not_null: the severity 'fatal' is neither error nor warn",
        "13: shop.orders.id: relationships: 'field' is missing",
        "15: unit_tests t: a unit test runs a model on rows of its own, and says nothing about a table",
    ]
    assert result.carried_over == 0
    assert result.active_left == 6


def test_sql_of_another_dialect_is_translated_when_its_name_is_given() -> None:
    text = "models: [{name: o, columns: [{name: a, tests: [{not_null: {where: \"code ~ '^a'\"}}]}]}]"
    assert "it does not parse" in imported(text).left[0].reason
    (check,) = imported(text, dialect="postgres").checks["shop.o"]
    assert check["not_null"]["where"] == "code RLIKE '^a'"


def test_a_namespace_is_asked_for() -> None:
    with pytest.raises(InvalidPipeline, match="--namespace shop"):
        imported("models: [{name: o}]", namespace=None)


def test_settings_under_arguments_are_settings_as_in_dbt_and_other_words_are_arguments() -> None:
    macro = "{% test cap(model, limit=7, group=none, docs=none) %}select {{ limit }}, {{ group }}, {{ docs }} "
    macro += "from {{ model }}{% endtest %}"
    text = "models: [{name: o, tests: [{cap: {arguments: {limit: 10, group: 3, severity: warn}, docs: 4}}]}]"
    (check,) = imported(text, macro).checks["shop.o"]
    assert check["sql"] == {"name": "cap", "query": "select 7, 3, 4 from shop.o", "severity": "warn"}
