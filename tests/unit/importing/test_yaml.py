"""Importing files of YAML, as dbt and Soda read them."""

import pytest

from importing.imported import SourceText
from importing.yaml_lines import read_yaml
from sluice.errors import InvalidPipeline
from tests.harness.imported_dbt import imported, reasons


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models: [", r"schema.yml:1: this is not valid YAML"),
        ("a: &a [x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\n" + "".join(
            f"k{n}: &k{n} [{', '.join([f'*k{n - 1}' if n else '*b'] * 8)}]\n" for n in range(8)
        ), "more than 200,000 values"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(InvalidPipeline, match=message):
        imported(text)


def test_tabs_inside_of_texts_are_read_as_dbt_reads_them() -> None:
    result = imported(
        "models:\n  - name: o\n    description: a\tb\n    columns:\n      - name: x\n        tests: [unique]\n"
    )
    assert result.carried_over == 1


def test_the_last_value_of_a_key_counts_and_the_earlier_one_is_listed() -> None:
    result = imported(
        """
models:
  - name: o
    columns:
      - name: a
        tests: [unique]
        description: a column
        tests: [not_null]
"""
    )
    assert result.checks == {"shop.o": [{"not_null": {"column": "a", "scope": "table"}}]}
    assert reasons(result) == ["6: the key tests: dbt uses the value of the same key on line 8 instead"]
    assert result.active_left == 0


def test_texts_are_truth_values_and_numbers_as_dbt_reads_them() -> None:
    result = imported(
        """
models:
  - name: o
    columns:
      - name: a
        tests:
          - accepted_values: {values: [Y, n, on, 010, 1e3], quote: no}
          - dbt_utils.accepted_range: {min_value: 0, inclusive: yes}
          - unique: {enabled: off}
"""
    )
    assert [f"{each.line}: {each.reason}" for each in result.left if not each.inactive] == [
        "7: 'Y' is an expression where a value is needed"
    ]
    assert result.checks == {"shop.o": [{"accepted_range": {"column": "a", "min": 0, "scope": "table"}}]}
    assert [each.line for each in result.left if each.inactive] == [9]
    text = "models: [{name: o, columns: [{name: a, tests: [{accepted_values: {values: [Y, n, yes, 010]}}]}]}]"
    assert imported(text).checks["shop.o"][0]["accepted_values"]["values"] == ["Y", "n", True, 8]


def test_a_key_that_stands_twice_is_refused_in_a_file_of_soda() -> None:
    text = "checks for t:\n  - row_count > 0\nchecks for t:\n  - row_count > 1\n"
    with pytest.raises(InvalidPipeline, match=r"checks.yml:3: .* the key 'checks for t' occurs twice in one mapping"):
        read_yaml(SourceText("checks.yml", text))


def test_a_value_that_is_no_date_makes_a_file_invalid_and_not_more() -> None:
    with pytest.raises(
        InvalidPipeline, match=r"1: this is not valid YAML: '2024-13-01' cannot be read: month must be in 1..12"
    ):
        imported("models: [{name: o, meta: {since: 2024-13-01}}]")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("models: [{name: o, columns: abc}]", "`columns` is 'abc', not a list"),
        ("models: [{name: o, columns: 5, tests: [at_least_one: {column_name: a}]}]", "`columns` is '5', not a list"),
        ("models: [{name: o, config: [a]}]", "`config` is \"['a']\", not a mapping"),
        ("models: {name: o}", "`models` is \"{'name': 'o'}\", not a list"),
        ("models: [o]", "'o' in `models` is not a mapping"),
        ("models: [{name: o, columns: [a]}]", "'a' in `columns` is not a mapping"),
        ("sources: [{name: s, tables: [{name: t, freshness: x}]}]", "`freshness` is 'x', not a mapping"),
        (
            "models: [{name: o, tests: [unique: {config: x}]}]",
            "the `arguments` or the `config` of the test is not a mapping",
        ),
        (
            "models: [{name: o, tests: [unique: {arguments: [1]}]}]",
            "the `arguments` or the `config` of the test is not a mapping",
        ),
        ("models: [{name: o, constraints: [{type: unique, columns: 5}, {type: check}]}]", "has no `expression`"),
        ("models: [{tests: [unique: {column_name: a}]}]", "it has no name"),
        (
            "models: [{name: o, tests: [dbt_utils.equality: {compare_model: ref('b'), compare_columns: [a], "
            "precision: x}]}]",
            "it cannot be read: ValueError: ",
        ),
        (
            "models: [{name: o, versions: [{v: 1, columns: [{include: 5}]}], columns: [{name: a}], tests: [x]}]",
            "x is a",
        ),
        ("[models]", "it is not a mapping"),
    ],
)
def test_what_has_another_shape_than_dbt_gives_it_is_listed(text: str, problem: str) -> None:
    assert any(problem in each for each in reasons(imported(text))), reasons(imported(text))
