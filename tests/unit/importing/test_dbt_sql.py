"""Importing from dbt: SQL texts, whose quotes mean a column in most systems and a text in Spark."""

import pytest

from tests.harness.imported_dbt import imported, reasons

ADVICE = "name the dialect with --dialect"


def of_test(test: str, dialect: str | None = None) -> str:
    """Import one test of a table; return its check as text, or the reason why there is none."""
    result = imported(f"models:\n  - name: o\n    tests:\n      - {test}\n", dialect=dialect)
    return str(result.checks["shop.o"][0]) if result.checks else reasons(result)[0]


@pytest.mark.parametrize(
    ("test", "translated"),
    [
        (
            """dbt_utils.expression_is_true: {expression: '"kind" is not null'}""",
            "coalesce((`kind` IS NOT NULL), TRUE)",
        ),
        ("""dbt_utils.recency: {datepart: month, field: '"ts"::date', interval: 1}""", "CAST(`ts` AS DATE)"),
        ("""dbt_utils.accepted_range: {column_name: a, min_value: '"b" + 1'}""", "`a` >= (`b` + 1)"),
        ("""not_null: {column_name: '"a" || "b"'}""", "(`a` || `b`) IS NOT NULL"),
        ("""unique: {column_name: a, where: '"b" = 3'}""", "`b` = 3"),
        ("""not_null: {column_name: a, fail_calc: 'sum("n")'}""", "sum(`n`)"),
        ("""dbt_utils.at_least_one: {column_name: a, group_by_columns: ['"b"::int']}""", "CAST(`b` AS INT)"),
    ],
)
def test_every_text_that_is_sql_is_translated_and_needs_a_dialect_where_it_has_double_quotes(
    test: str, translated: str
) -> None:
    assert translated.lower() in of_test(test, "postgres").lower().replace("concat(`a`, `b`)", "`a` || `b`")
    assert ADVICE in of_test(test)


@pytest.mark.parametrize("dialect", [None, "postgres"])
def test_a_text_that_is_one_name_in_double_quotes_is_a_column(dialect: str | None) -> None:
    assert "'field': 'F'" in of_test("""relationships: {column_name: a, to: ref('b'), field: '"F"'}""", dialect)
    assert "'column': 'Kind'" in of_test("""not_null: {column_name: '"Kind"'}""", dialect)
    assert "`a` >= (`b`)" in of_test("""dbt_utils.accepted_range: {column_name: a, min_value: '"b"'}""", dialect)


@pytest.mark.parametrize("dialect", ["postgres", "bigquery", "spark"])
def test_an_expression_under_a_column_is_translated_with_the_column(dialect: str) -> None:
    test = """dbt_utils.expression_is_true: {expression: "in ('x')"}"""
    text = f"models: [{{name: o, columns: [{{name: a, tests: [{test}]}}]}}]"
    (check,) = imported(text, dialect=dialect).checks["shop.o"]
    assert check["expression_is_true"]["expression"] == "coalesce((`a` IN ('x')), TRUE)"


def test_double_quotes_are_a_text_where_the_dialect_says_so() -> None:
    test = """dbt_utils.expression_is_true: {expression: 'kind = "x"'}"""
    assert "kind = 'x'" in of_test(test, "bigquery")
    assert "kind = 'x'" in of_test(test, "spark")


def test_the_sql_of_a_project_is_translated_with_the_condition_of_the_test() -> None:
    macro = """{% test own(model, column) %}select * from {{ model }} where "{{ column }}" is null{% endtest %}"""
    text = """models: [{name: o, tests: [own: {column: a, config: {where: '"b" ~ ''x'''}}]}]"""
    (check,) = imported(text, macro, dialect="postgres").checks["shop.o"]
    assert check["sql"]["query"] == "SELECT * FROM (SELECT * FROM shop.o WHERE `b` RLIKE 'x') WHERE `a` IS NULL"
    result = imported("models: [{name: o, tests: [own: {column: a}]}]", macro)
    assert ADVICE in result.left[0].reason


def test_constraints_and_freshness_are_translated() -> None:
    text = """
models: [{name: o, constraints: [{type: check, expression: '"a" > 1'}]}]
sources:
  - name: raw
    freshness: {error_after: {count: 1, period: day}, filter: '"b" > 1'}
    tables: [{name: s, loaded_at_field: '"t"::date'}]
"""
    checks = imported(text, dialect="postgres").checks
    assert checks["shop.o"][0]["expression_is_true"]["expression"] == "coalesce((`a` > 1), TRUE)"
    assert "CAST(`t` AS DATE)" in checks["raw.s"][0]["sql"]["query"]
    assert "WHERE `b` > 1" in checks["raw.s"][0]["sql"]["query"]
    assert all(ADVICE in each.reason for each in imported(text).left) and not imported(text).checks


@pytest.mark.parametrize("more", ["", ", group_by_columns: [b]", ", ignore_time_component: true"])
def test_a_table_without_a_time_is_not_recent(more: str) -> None:
    written = of_test(f"dbt_utils.recency: {{datepart: day, field: cast(ts as timestamp), interval: 1{more}}}")
    assert "WHERE NOT (coalesce(observed >= " in written


@pytest.mark.parametrize(
    "expression",
    ["a > > 1", "coalesce(, true)", "concat(a,) = 'x'", "concat(a, , b) = 'x'", "a is", "a is 3", "a in ()", "() = a"],
)
def test_an_expression_that_is_no_sql_is_listed(expression: str) -> None:
    """The validation's parser accepts these."""
    written = of_test(f'dbt_utils.expression_is_true: {{expression: "{expression}"}}')
    assert "dbt_utils.expression_is_true: " in written and "{'" not in written, written


@pytest.mark.parametrize(
    "expression",
    ["a << 2 > 1", "cast(a as array<array<int>>) is not null", "a is not distinct from b", "exists(a, x -> x > 1)",
     "current_date() > a", "a in (1, 2)", "struct(a).is = 1", "cast(a as map<int, array<int> >) is null"],
)  # fmt: skip
def test_an_expression_that_is_sql_is_carried_over(expression: str) -> None:
    assert "'expression_is_true'" in of_test(f'dbt_utils.expression_is_true: {{expression: "{expression}"}}')


@pytest.mark.parametrize(
    ("test", "condition"),
    [
        ("dbt_utils.not_constant: {", "observed <> 1"),
        ("dbt_expectations.expect_column_max_to_be_between: {min_value: 1, ", "observed >= 1"),
        ("dbt_expectations.expect_column_mean_to_be_between: {min_value: 1, ", "observed >= 1"),
        ("dbt_expectations.expect_column_proportion_of_unique_values_to_be_between: {min_value: 1, ", "observed >= 1"),
    ],
)
def test_an_aggregate_without_values_passes(test: str, condition: str) -> None:
    """Checks with these names would fail without values."""
    assert f"WHERE NOT ({condition})" in of_test(f"{test}column_name: a}}")


def test_tables_are_compared_by_the_names_of_their_columns() -> None:
    written = of_test("dbt_utils.equality: {compare_model: ref('b'), exclude_columns: [x]}")
    other = (
        "SELECT * FROM (SELECT * EXCEPT (`x`) FROM `shop`.`o` AS shape WHERE FALSE) AS names NATURAL RIGHT OUTER JOIN "
        "(SELECT * EXCEPT (`x`) FROM `shop`.`b` AS rows) AS others"
    )
    assert written.count(other) == 2
    both = "dbt_utils.equality: {compare_model: ref('b'), compare_columns: [a], exclude_columns: [x]}"
    assert "dbt refuses compare_columns together with exclude_columns" in of_test(both)


def test_a_number_that_is_none_is_not_left_out() -> None:
    quantile = "dbt_expectations.expect_column_quantile_values_to_be_between: {column_name: a, min_value: 1, quantile: "
    for each in ("x", "[1]", "1.5"):
        assert "quantile is not a number" in of_test(f"{quantile}{each}}}")
    assert "interval is not a number" in of_test("dbt_utils.sequential_values: {column_name: a, interval: [x]}")


def test_a_function_of_another_system_is_listed_with_the_option_that_translates_it() -> None:
    test = "dbt_utils.expression_is_true: {expression: 'safe_divide(a, b) > 1'}"
    assert of_test(test).endswith("; --dialect bigquery translates it")
    assert "TRY_DIVIDE(a, b)" in of_test(test, "bigquery")
