"""Checks from dbt and from Great Expectations."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.import_checks import ImportedChecks, import_checks
from sluice.errors import InvalidPipeline

DBT = """\
version: 2
models:
  - name: orders
    tests:
      - dbt_utils.unique_combination_of_columns: {combination_of_columns: [day, number]}
      - my_own_test
    columns:
      - name: id
        tests: [unique, not_null]
      - name: status
        data_tests:
          - accepted_values: {values: [new, paid], config: {severity: warn, where: "id > 3"}}
          - relationships: {arguments: {to: ref('states'), field: name}}
          - not_null: {warn_if: ">10", error_if: ">100"}
          - unique: {config: {enabled: false}}
          - dbt_utils.expression_is_true: {expression: ">= 0"}
          - not_null: {where: "is_incremental("}
sources:
  - name: raw
    tables:
      - name: events
        columns:
          - name: at
            tests:
              - dbt_utils.recency: {field: at, datepart: day, interval: 2}
              - dbt_utils.recency: {field: at, datepart: month, interval: 2}
"""


def imported(tmp_path: Path, name: str, text: str) -> ImportedChecks:
    path = tmp_path / name
    path.write_text(text)
    return import_checks(path, "table", "shop")


def test_generic_tests_of_dbt(tmp_path: Path) -> None:
    checks = imported(tmp_path, "schema.yml", DBT)
    assert checks.checks["shop.orders"] == [
        {"dbt_utils.unique_combination_of_columns": {"combination_of_columns": ["day", "number"], "scope": "table"}},
        {"unique": {"column": "id", "scope": "table"}},
        {"not_null": {"column": "id", "scope": "table"}},
        {
            "accepted_values": {
                "values": ["new", "paid"], "column": "status", "severity": "warn", "where": "id > 3", "scope": "table",
            }
        },
        {"relationships": {"to": "shop.states", "field": "name", "column": "status", "scope": "table"}},
        {"not_null": {"column": "status", "warn_if": ">10", "fail_if": ">100", "scope": "table"}},
        {"dbt_utils.expression_is_true": {"expression": "`status` >= 0", "scope": "table"}},
    ]  # fmt: skip
    assert list(checks.checks) == ["shop.orders", "shop.events"]
    assert len(checks.left) == 4
    reasons = "\n".join(checks.left)
    for words in (
        "my_own_test: there is no check 'my_own_test'",
        "unique: it is not enabled",
        "where: ",
        "dbt_utils.recency: ",
    ):
        assert words in reasons


def test_expectations(tmp_path: Path) -> None:
    expectations: list[dict[str, Any]] = [
        {"type": "expect_column_values_to_be_between", "kwargs": {"column": "a", "min_value": 0, "mostly": 0.9}},
        {"expectation_type": "expect_table_row_count_to_equal", "kwargs": {"value": 3}},
        {"type": "expect_column_median_to_be_between", "kwargs": {"column": "a", "min_value": 1}},
        {"type": "expect_column_distinct_values_to_equal_set", "kwargs": {"column": "a", "value_set": [1]}},
        {"type": "expect_column_values_to_be_between", "kwargs": {"column": "a", "min_value": 0, "strict_min": True}},
        {"type": "expect_column_kl_divergence_to_be_less_than", "kwargs": {"column": "a"}},
    ]
    checks = imported(tmp_path, "orders.json", json.dumps({"name": "orders", "expectations": expectations}))
    assert len(checks.checks["shop.orders"]) == 4
    assert checks.checks["shop.orders"][0] == {
        "expect_column_values_to_be_between": {"column": "a", "min_value": 0, "mostly": 0.9, "scope": "table"}
    }
    assert len(checks.left) == 2


@pytest.mark.parametrize(("name", "text"), [("a.yml", "just: this"), ("a.json", "{"), ("a.yml", "a: [")])
def test_what_is_neither(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(InvalidPipeline, match=r"neither|cannot be read"):
        imported(tmp_path, name, text)
