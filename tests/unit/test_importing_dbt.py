"""Importing from dbt: property files, and the tests that a project defines itself."""

from typing import Any

import pytest

from sluice.errors import InvalidPipeline
from sluice.importing.imported import ImportedChecks, SourceText
from sluice.importing.project import Files, ImportOptions, import_files


def imported(text: str, *macros: str, project: str = "", **options: Any) -> ImportedChecks:
    files = Files(
        dbt=[SourceText("schema.yml", text)],
        macros=[SourceText(f"macros/{number}.sql", each) for number, each in enumerate(macros)],
        projects=[SourceText("dbt_project.yml", project)] if project else [],
    )
    return import_files(files, ImportOptions(**{"namespace": "shop", **options}), lenient=False)


def of_column(tests: str) -> list[dict[str, Any]]:
    """Import tests of one column, all of which must be carried over, and return the checks."""
    result = imported(f"models:\n  - name: orders\n    columns:\n      - name: amount\n        tests: [{tests}]\n")
    assert not result.left, result.left
    return result.checks["shop.orders"]


def of_table(tests: str) -> list[dict[str, Any]]:
    result = imported(f"models:\n  - name: orders\n    tests: [{tests}]\n")
    assert not result.left, result.left
    return result.checks["shop.orders"]


def reasons(result: ImportedChecks) -> list[str]:
    return [f"{each.line}: {each.test}: {each.reason}" for each in result.left]


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
    """dbt warns from the first failure on, unless `warn_if` says otherwise; a `warn_if` alone changes nothing."""
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
        "15: shop.orders.id: unique: the arguments of a test are a mapping, and not \"['a', 'b']\"",
        "16: shop.orders.id: not_null: 'unique' stands beside the name of the test, and belongs under it",
    ]


VARIABLES = """
models:
  - name: orders
    columns:
      - name: status
        tests:
          - accepted_values: {values: "{{ var('states') }}"}
          - accepted_values: {values: "{{ var('others', ['x']) }}"}
          - not_null: {enabled: "{{ var('strict', true) | as_bool }}"}
          - not_null: {enabled: "{{ target.type == 'snowflake' }}"}
          - not_null: {where: "at > {{ var('since') }}"}
"""


def test_variables_with_their_defaults() -> None:
    project = "name: mine\nvars: {states: [new, paid], mine: {since: 5}}"
    result = imported(VARIABLES, project=project)
    assert [check.get("accepted_values", {}).get("values") for check in result.checks["shop.orders"]] == [
        ["new", "paid"], ["x"], None, None,
    ]  # fmt: skip
    assert result.checks["shop.orders"][3] == {"not_null": {"column": "status", "where": "at > 5", "scope": "table"}}
    assert [(each.line, each.inactive) for each in result.left] == [(10, True)]
    alone = imported(VARIABLES, variables={"states": ["a"]})
    assert reasons(alone)[-1] == "11: shop.orders.status: not_null: the variable 'since' has no default"


def test_settings_of_the_project_hold_for_all_tests_of_it_or_of_a_folder() -> None:
    project = """
name: mine
tests:
  +store_failures: true
  mine:
    +severity: warn
    staging: {+severity: error, +where: a > 1}
    old: {+enabled: false}
"""
    text = "models: [{name: NAME, columns: [{name: id, tests: [unique, {not_null: {severity: error}}]}]}]"
    files = Files(
        dbt=[
            SourceText("x/models/schema.yml", text.replace("NAME", "root")),
            SourceText("x/models/staging/deep/schema.yml", text.replace("NAME", "staged")),
            SourceText("x/models/old/schema.yml", text.replace("NAME", "old")),
        ],
        projects=[SourceText("x/dbt_project.yml", project)],
    )
    result = import_files(files, ImportOptions(namespace="shop"))
    assert result.checks == {
        "shop.root": [
            {"unique": {"column": "id", "severity": "warn", "scope": "table"}},
            {"not_null": {"column": "id", "scope": "table"}},
        ],
        "shop.staged": [
            {"unique": {"column": "id", "where": "a > 1", "scope": "table"}},
            {"not_null": {"column": "id", "where": "a > 1", "scope": "table"}},
        ],
    }
    assert [each.inactive for each in result.left] == [True, True]


def test_folders_that_are_called_as_a_setting_and_settings_that_are_none() -> None:
    text = "models: [{name: o, columns: [{name: id, tests: [unique]}]}]"
    for tests in ("[a, b]", "{mine: {tags: {+severity: warn}}}", "null", "{mine: null}"):
        result = imported(text, project=f"name: mine\nvars: [x]\ntests: {tests}")
        assert result.checks == {"shop.o": [{"unique": {"column": "id", "scope": "table"}}]}


SOURCES = """
sources:
  - name: raw
    schema: "{{ var('schema', 'lake_raw') }}"
    loaded_at_field: loaded_at
    freshness: {warn_after: {count: 12, period: hour}, error_after: {count: 2, period: day}}
    tables:
      - name: orders
        columns: [{name: id, tests: [unique]}]
      - name: clicks
        identifier: clicks_v2
        freshness: {error_after: {count: 1, period: week}, filter: day > 1}
      - name: static
        freshness: null
  - name: other
    tables:
      - {name: things, freshness: {error_after: {count: 1, period: day}}}
"""


def test_sources_are_tables_of_their_schema_and_have_an_age() -> None:
    result = imported(SOURCES)
    assert list(result.checks) == ["lake_raw.orders", "lake_raw.clicks_v2"]
    assert result.checks["lake_raw.orders"] == [
        {"unique": {"column": "id", "scope": "table"}},
        {"freshness": {"column": "loaded_at", "max_age": "172800s", "scope": "table"}},
        {"freshness": {"column": "loaded_at", "max_age": "43200s", "severity": "warn", "scope": "table"}},
    ]
    assert "WHERE day > 1" in result.checks["lake_raw.clicks_v2"][0]["sql"]["query"]
    assert "INTERVAL '1' WEEK" in result.checks["lake_raw.clicks_v2"][0]["sql"]["query"]
    assert reasons(result) == [
        "17: other.things: freshness (error_after): there is no `loaded_at_field`: dbt asks the warehouse when the "
        "table was loaded"
    ]


def test_constraints_and_an_enforced_contract() -> None:
    result = imported(
        """
models:
  - name: orders
    config: {contract: {enforced: true}}
    constraints:
      - {type: primary_key, columns: [id, day]}
      - {type: check, expression: "amount > 0"}
      - {type: foreign_key, columns: [day], to: ref('days'), to_columns: [day]}
    columns:
      - {name: id, data_type: bigint, constraints: [{type: not_null}]}
      - {name: day, data_type: date}
      - {name: amount, data_type: "numeric(10,2)"}
"""
    )
    assert not result.left
    checks = result.checks["shop.orders"]
    assert {"not_null": {"column": "id", "scope": "table"}} in checks
    assert {"unique_combination_of_columns": {"columns": ["id", "day"], "scope": "table"}} in checks
    assert {"expression_is_true": {"expression": "coalesce((amount > 0), TRUE)", "scope": "table"}} in checks
    assert {"relationships": {"column": "day", "to": "shop.days", "field": "day", "scope": "table"}} in checks
    assert checks[-4:] == [
        {"column_names": {"columns": ["id", "day", "amount"]}},
        {"column_type": {"column": "id", "type": "long"}},
        {"column_type": {"column": "day", "type": "date"}},
        {"column_type": {"column": "amount", "type": "decimal(10,2)"}},
    ]


def test_versions_are_tables_of_their_own_and_a_reference_means_the_latest() -> None:
    result = imported(
        """
models:
  - name: orders
    latest_version: 2
    columns: [{name: id, tests: [unique]}, {name: note, tests: [not_null]}]
    versions:
      - v: 1
      - v: 2
        columns: [{include: all, exclude: [note]}, {name: total, tests: [not_null]}]
      - {v: 3, config: {alias: orders_next}}
  - name: lines
    columns:
      - {name: a, tests: [{relationships: {to: ref('orders'), field: id}}]}
      - {name: b, tests: [{relationships: {to: "ref('orders', v=3)", field: id}}]}
"""
    )
    assert list(result.checks) == ["shop.orders_v1", "shop.orders_v2", "shop.orders_next", "shop.lines"]
    assert [next(iter(check)) for check in result.checks["shop.orders_v1"]] == ["unique", "not_null"]
    assert [next(iter(check.values()))["column"] for check in result.checks["shop.orders_v2"]] == ["id", "total"]
    assert [check["relationships"]["to"] for check in result.checks["shop.lines"]] == [
        "shop.orders_v2",
        "shop.orders_next",
    ]


OWN_TEST = """
{% test is_even(model, column_name, limit=0, note=none) %}
  {{ config(severity='warn') }}
  -- a comment
  select * from {{ model }} where {{ _odd(column_name) }} {% if note %}and {{ note }}{% endif %}
{% endtest %}
{% macro _odd(name) %}{{ return(adapter.dispatch('odd')(name)) }}{% endmacro %}
{% macro default__odd(name) %}{{ name }} % 2 = 1{% endmacro %}
{% macro spark__odd(name) %}mod({{ name }}, 2) = 1{% endmacro %}
"""


def test_a_test_of_the_project_becomes_its_query() -> None:
    text = "models: [{name: o, columns: [{name: n, tests: [is_even, {is_even: {where: 'n > 1', severity: error}}]}]}]"
    checks = imported(text, OWN_TEST).checks["shop.o"]
    assert checks[0]["sql"] == {
        "name": "is_even(n)", "query": "select * from shop.o where mod(n, 2) = 1", "severity": "warn",
    }  # fmt: skip
    assert checks[1]["sql"] == {
        "name": "is_even(n)", "query": "select * from (SELECT * FROM `shop`.`o` WHERE n > 1) where mod(n, 2) = 1",
    }  # fmt: skip
    without = imported(text)
    assert "is_even is a test of the project: import the folder of the project" in reasons(without)[0]


@pytest.mark.parametrize(
    ("macro", "reason"),
    [
        ("{% set x = run_query('select 1') %} select 1", "uses run_query, which only dbt has"),
        ("select * from {{ model }} where {{ missing_argument }}", "cannot be resolved"),
        ("select {{ dbt_utils.star(model) }} from x", "it needs the macro dbt_utils.star, which only dbt has"),
        ("select {{ ''.__class__.__mro__ }}", "cannot be resolved"),
        ("select {{ 'a' * 10 ** 9 }}", "cannot be resolved"),
        ("select {{ 'a' * 999999999 }}", "cannot be resolved"),
        ("{% for i in range(999999999) %}a{% endfor %}", "cannot be resolved"),
        (
            "{{ evil() }}{% endtest %}{% macro evil() %}{{ evil() }}{% endmacro %}{% test unused() %}",
            "cannot be resolved",
        ),
        ("{{ exceptions.raise_compiler_error('not on Spark') }}", "not on Spark"),
        ("drop table {{ model }}", "query: "),
        ("select * from csv.`/etc/passwd`", "query: "),
    ],
)
def test_a_hostile_or_foreign_macro_is_listed_and_runs_nothing(macro: str, reason: str) -> None:
    text = "models: [{name: o, tests: [own]}]"
    result = imported(text, f"{{% test own(model, missing_argument) %}}{macro}{{% endtest %}}")
    assert not result.checks
    assert reason in reasons(result)[0]


def test_a_macro_that_makes_nothing_is_no_query() -> None:
    result = imported("models: [{name: o, tests: [own]}]", "{% test own(model) %}{% endtest %}")
    assert not result.checks
    assert len(result.left) == 1


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


def test_a_singular_test_is_a_query_of_the_first_table_that_it_reads() -> None:
    files = Files(
        dbt=[SourceText("models/schema.yml", "models: [{name: orders}]")],
        singular=[
            SourceText(
                "tests/no_debt.sql", "{{ config(severity='warn') }}\nselect * from {{ ref('orders') }} where a < 0;"
            ),
            SourceText("tests/odd.sql", "select {{ something }} from {{ ref('orders') }}"),
        ],
    )
    result = import_files(files, ImportOptions(namespace="shop"))
    assert result.checks == {
        "shop.orders": [
            {"sql": {"name": "no_debt", "query": "select * from shop.orders where a < 0", "severity": "warn"}}
        ]
    }
    assert reasons(result) == ["1: odd: it cannot be resolved: 'something' is undefined"]


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


def test_a_namespace_is_asked_for() -> None:
    with pytest.raises(InvalidPipeline, match="--namespace shop"):
        imported("models: [{name: o}]", namespace=None)


def test_tabs_inside_of_texts_are_read_as_dbt_reads_them() -> None:
    result = imported(
        "models:\n  - name: o\n    description: a\tb\n    columns:\n      - name: x\n        tests: [unique]\n"
    )
    assert result.carried_over == 1
