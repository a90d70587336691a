"""Importing the tests of dbt_expectations: options that change what passes."""

from typing import Any

from sluice.importing.imported import ImportedChecks, SourceText
from sluice.importing.project import Files, ImportOptions, import_files


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
    assert reason == "match_on is 'most', and may be any or all"
