"""Importing from dbt: the settings of the project around a property file, and the tests that it defines itself."""

import pytest

from importing.imported import SourceText
from importing.project import Files, ImportOptions, import_files
from tests.harness.imported_dbt import imported, reasons

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


PER_TARGET = """
models:
  - name: o
    tests:
      - not_null: {column_name: a, where: "{% if target.name == 'prod' %}1 = 1{% else %}d > 3{% endif %}"}
      - unique: {column_name: a, enabled: "{{ target.name == 'prod' }}"}
      - not_null: {column_name: b, where: "db = '{{ target['database'] }}'"}
      - not_null: {column_name: c, where: "s = '{{ target.schema }}'"}
"""


def test_what_depends_on_the_target_is_carried_over_where_the_target_is_known() -> None:
    result = imported(PER_TARGET)
    assert result.checks == {"shop.o": [{"not_null": {"column": "c", "where": "s = 'shop'", "scope": "table"}}]}
    assert result.active_left == 3
    assert reasons(result) == [
        "5: shop.o: not_null: it depends on `target.name`: say which target it is with --target",
        "6: shop.o: unique: it depends on `target.name`: say which target it is with --target",
        "7: shop.o: not_null: it depends on `target.database`, which only a profile of dbt states",
    ]
    result = imported(PER_TARGET, target="prod")
    assert [next(iter(check)) for check in result.checks["shop.o"]] == ["not_null", "unique", "not_null"]
    assert result.checks["shop.o"][0]["not_null"]["where"] == "1 = 1"


@pytest.mark.parametrize(
    "expression",
    ["return(1)", "modules.re.match('(', 'a')", "namespace(a=1).b.c", "[1][5]", "{'a': 1}['b']['c']"],
)
def test_a_template_that_raises_anything_is_one_test_that_is_listed(expression: str) -> None:
    text = f'models: [{{name: o, tests: [unique: {{column_name: a, where: "{{{{ {expression} }}}}"}}, own]}}]'
    macro = "{% test own(model) %}select * from {{ model }} where {{ " + expression + " }}{% endtest %}"
    result = imported(text, macro)
    assert len(result.left) + result.carried_over == 2
    assert len(result.left) >= 1


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


def test_a_definition_in_a_comment_is_none() -> None:
    macro = "{# {% test own(model) %}select old from {{ model }}{% endtest %} #}\n"
    macro += "{% test own(model, text=')') %}{# a comment #}select new from {{ model }}{% endtest %}"
    (check,) = imported("models: [{name: o, tests: [own]}]", macro).checks["shop.o"]
    assert check["sql"]["query"] == "select new from shop.o"


def test_a_file_of_open_brackets_is_read_at_once() -> None:
    result = imported("models: [{name: o, tests: [own]}]", "{% test x( " * 60_000)
    assert len(result.left) == 1


def test_a_query_keeps_its_literals_and_loses_its_comments() -> None:
    macro = "{% test own(model) %}select *  -- it's\nfrom {{ model }} /* ' */\nwhere a <> '--x'\n  and b <> 'a  b'\n"
    macro += "{% endtest %}"
    text = "models: [{name: o, tests: [own]}]"
    query = "select * from shop.o where a <> '--x' and b <> 'a  b'"
    assert imported(text, macro).checks["shop.o"][0]["sql"]["query"] == query
    translated = imported(text, macro, dialect="postgres").checks["shop.o"][0]["sql"]["query"]
    assert translated == "SELECT * FROM shop.o WHERE a <> '--x' AND b <> 'a  b'"
    two = imported(text, "{% test own(model) %}select 1; select 2{% endtest %}", dialect="postgres")
    assert "contains 2 SQL statements instead of one" in reasons(two)[0]


def test_a_project_may_define_a_test_of_dbt_itself() -> None:
    macro = "{% test not_null(model, column_name) %}select * from {{ model }} where {{ column_name }} = ''{% endtest %}"
    (check,) = imported("models: [{name: o, columns: [{name: a, tests: [not_null]}]}]", macro).checks["shop.o"]
    assert check["sql"]["query"] == "select * from shop.o where a = ''"


def test_settings_are_of_the_folders_within_the_innermost_project() -> None:
    text = "models: [{name: NAME, columns: [{name: id, tests: [unique]}]}]"
    files = Files(
        dbt=[
            SourceText("models/data/deep/schema.yml", text.replace("NAME", "inner")),
            SourceText("nested/models/schema.yml", text.replace("NAME", "nested")),
        ],
        projects=[
            SourceText("dbt_project.yml", "name: mine\ntests: {mine: {data: {+severity: warn}}}"),
            SourceText("nested/dbt_project.yml", "name: other\ntests: {+where: a > 1}"),
        ],
    )
    result = import_files(files, ImportOptions(namespace="shop"))
    assert result.checks == {
        "shop.inner": [{"unique": {"column": "id", "severity": "warn", "scope": "table"}}],
        "shop.nested": [{"unique": {"column": "id", "where": "a > 1", "scope": "table"}}],
    }


def test_projects_in_one_folder_do_not_share_variables_or_definitions() -> None:
    text = "models: [{name: NAME, tests: [own, not_null: {column_name: a, where: \"a > {{ var('x', 3) }}\"}]}]"
    macro = "{% test own(model) %}select NAME from {{ model }}{% endtest %}"
    files = Files(
        dbt=[SourceText(f"{name}/models/s.yml", text.replace("NAME", name)) for name in ("a", "b", "c")],
        macros=[SourceText(f"{name}/macros/m.sql", macro.replace("NAME", name)) for name in ("a", "b")],
        projects=[
            SourceText("a/dbt_project.yml", "name: a\nvars: {x: 1}"),
            SourceText("b/dbt_project.yml", "name: b\nvars: {x: 2}"),
            SourceText("c/dbt_project.yml", "name: c"),
        ],
    )
    result = import_files(files, ImportOptions(namespace="shop"))
    written = {table: [next(iter(each.values())) for each in checks] for table, checks in result.checks.items()}
    assert {table: checks[-1]["where"] for table, checks in written.items()} == {
        "shop.a": "a > 1", "shop.b": "a > 2", "shop.c": "a > 3",
    }  # fmt: skip
    assert {table: checks[0]["query"] for table, checks in written.items() if len(checks) > 1} == {
        "shop.a": "select a from shop.a", "shop.b": "select b from shop.b",
    }  # fmt: skip
    assert reasons(result) == ["1: shop.c: own: several other projects define own in different ways"]


def test_settings_of_a_definition_count_between_those_of_the_project_and_of_the_test() -> None:
    macro = "{% test own(model) %}{{ config(severity='error') }}select 1 from {{ model }}{% endtest %}"
    text = "models: [{name: o, tests: [own, own: {warn_if: '> 3', severity: warn}]}]"
    first, second = imported(text, macro, project="name: mine\ntests: {+severity: warn}").checks["shop.o"]
    assert "severity" not in first["sql"] and second["sql"]["severity"] == "warn"
    filtered = macro.replace("severity='error'", "where='a > 1'")
    assert "the definition of the test itself sets where" in reasons(imported(text, filtered))[0]


def test_a_limit_beside_a_threshold_changes_what_fails_and_is_listed() -> None:
    text = (
        "models: [{name: o, columns: [{name: a, tests: [unique: {limit: 10}, not_null: {limit: 9, error_if: '>9'}]}]}]"
    )
    result = imported(text)
    assert result.checks == {"shop.o": [{"unique": {"column": "a", "scope": "table"}}]}
    assert "a `limit` of the rows" in reasons(result)[0]


def test_tests_of_a_project_whose_settings_cannot_be_read_are_listed() -> None:
    files = Files(
        dbt=[
            SourceText("a/models/s.yml", "models: [{name: a, columns: [{name: a, tests: [unique]}]}]"),
            SourceText("b/models/s.yml", "models: [{name: b, columns: [{name: a, tests: [unique]}]}]"),
            SourceText("c/models/s.yml", "models: [{name: c, columns: [{name: a, tests: [unique]}]}]"),
        ],
        projects=[SourceText("a/dbt_project.yml", "tests: ["), SourceText("b/dbt_project.yml", "name: b")],
        unread=[("c/dbt_project.yml", "it is not written in UTF-8")],
    )
    result = import_files(files, ImportOptions(namespace="shop"))
    assert list(result.checks) == ["shop.b"]
    assert [each.file for each in result.left] == [
        *("c/dbt_project.yml", "a/dbt_project.yml", "a/models/s.yml", "c/models/s.yml"),
    ]
