"""Imported tests pass and fail on real tables as in their original tool."""

import io
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from importing.imported import ImportedChecks, SourceText
from importing.project import Files, ImportOptions, import_files
from tests.harness.system import SystemHarness

JOB = '''
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE NAMESPACE IF NOT EXISTS t")
rows = """
    SELECT * FROM VALUES
        (1, 'a', 1.0D, DATE '2026-01-01', 0, 5, 'ana@x.org', 'Red'),
        (2, 'b', 2.0D, DATE '2026-01-02', 5, 9, 'bob@x.org', 'red'),
        (3, 'b', 3.5D, DATE '2026-01-04', 9, 9, '  ', NULL)
    AS v(id, kind, amount, day, low, high, mail, colour)
"""
spark.sql(rows).writeTo("t.imported").createOrReplace()
spark.sql("SELECT * FROM (" + rows + ") WHERE id < 3").writeTo("t.imported_other").createOrReplace()
spark.sql("SELECT id, current_timestamp() - make_interval(0, 0, 0, id) AS at FROM t.imported").writeTo(
    "t.imported_recent"
).createOrReplace()
'''
E, U = "dbt_expectations.expect_", "dbt_utils."
PASS = [
    "{not_null: {column_name: id}}",
    "{unique: {column_name: 'concat(kind, day)'}}",
    "{relationships: {column_name: id, to: ref('imported_other'), field: id, config: {where: id < 3}}}",
    "{accepted_values: {column_name: kind, values: [a, b], severity: error, error_if: '>1'}}",
    f"{{{U}equality: {{compare_model: ref('imported')}}}}",
    f"{{{U}equality: {{compare_model: ref('imported'), exclude_columns: [mail]}}}}",
    f"{{{U}equality: {{compare_model: ref('imported'), compare_columns: [amount, kind], precision: 1}}}}",
    f"{{{U}cardinality_equality: {{column_name: id, field: id, to: ref('imported')}}}}",
    f"{{{U}fewer_rows_than: {{compare_model: ref('imported_other'), error_if: '=0'}}}}",
    f"{{{U}equal_rowcount: {{compare_model: ref('imported'), group_by_columns: [kind]}}}}",
    f"{{{U}not_constant: {{column_name: id, group_by_columns: [low >= 9], error_if: '>1'}}}}",
    f"{{{U}at_least_one: {{column_name: colour, group_by_columns: [kind]}}}}",
    f"{{{U}not_null_proportion: {{column_name: colour, at_least: 0.5, group_by_columns: [kind]}}}}",
    f"{{{U}relationships_where: {{column_name: id, to: ref('imported_other'), field: id, from_condition: id < 3}}}}",
    f"{{{U}mutually_exclusive_ranges: {{lower_bound_column: low, upper_bound_column: high, gaps: not_allowed,"
    " zero_length_range_allowed: true}}",
    f"{{{U}expression_is_true: {{expression: colour <> 'blue'}}}}",
    f"{{{U}recency: {{datepart: month, interval: 1, field: at}}}}",
    f"{{{U}accepted_range: {{column_name: low, max_value: high}}}}",
    f"{{{E}column_values_to_match_regex: {{column_name: mail, regex: '^[A-Z]+@', flags: i, error_if: '=0'}}}}",
    f"{{{E}column_values_to_match_regex_list: {{column_name: kind, regex_list: [a, b]}}}}",
    f"{{{E}column_values_to_match_like_pattern_list: {{column_name: mail, like_pattern_list: ['%@%', '% %']}}}}",
    f"{{{E}column_distinct_values_to_contain_set: {{column_name: kind, value_set: [a, b]}}}}",
    f"{{{E}column_distinct_values_to_equal_set: {{column_name: kind, value_set: [a, b], row_condition: id > 0}}}}",
    f"{{{E}column_most_common_value_to_be_in_set: {{column_name: kind, value_set: [b], top_n: 1}}}}",
    f"{{{E}column_values_to_be_increasing: {{column_name: id, sort_column: day, step: 1}}}}",
    f"{{{E}column_sum_to_be_between: {{column_name: amount, min_value: 1, group_by: [kind]}}}}",
    f"{{{E}column_stdev_to_be_between: {{column_name: amount, min_value: 0, strictly: true}}}}",
    f"{{{E}column_quantile_values_to_be_between: {{column_name: amount, quantile: 0.5, min_value: 2, max_value: 2}}}}",
    f"{{{E}column_proportion_of_unique_values_to_be_between: {{column_name: kind, max_value: 0.7, strictly: true}}}}",
    f"{{{E}column_distinct_count_to_equal: {{column_name: kind, value: 2, row_condition: id > 0}}}}",
    f"{{{E}column_distinct_count_to_equal_other_table: {{column_name: kind, compare_model: ref('imported_other')}}}}",
    f"{{{E}table_row_count_to_equal_other_table_times_factor: {{compare_model: ref('imported_other'), factor: 1.5}}}}",
    f"{{{E}table_aggregation_to_equal_other_table: {{expression: max(id), compare_expression: max(id) + 1,"
    " compare_model: ref('imported_other')}}",
    f"{{{E}compound_columns_to_be_unique: {{column_list: [kind, colour], ignore_row_if: any_value_is_missing}}}}",
    f"{{{E}select_column_values_to_be_unique_within_record: {{column_list: [low, id]}}}}",
    f"{{{E}multicolumn_sum_to_equal: {{column_list: [low, id], sum_total: 20}}}}",
    f"{{{E}column_pair_values_to_be_in_set: {{column_A: id, column_B: low,"
    " value_pairs_set: [[1, 0], [2, 5], [3, 9]]}}",
    f"{{{E}row_values_to_have_data_for_every_n_datepart: {{date_col: day, interval: 3}}}}",
    f"{{{E}row_values_to_have_data_for_every_n_datepart: {{date_col: day, exclusion_condition: date_day <> DATE"
    " '2026-01-03'}}",
    f"{{{E}row_values_to_have_recent_data: {{column_name: at, datepart: day, interval: 2}}}}",
    f"{{{E}column_values_to_be_within_n_stdevs: {{column_name: amount, group_by: [id], sigma_threshold: 2}}}}",
    f"{{{E}column_values_to_be_within_n_moving_stdevs: {{column_name: amount, date_column_name: day,"
    " sigma_threshold: 6}}",
    f"{{{E}table_columns_to_match_ordered_list: {{column_list: [id, kind, amount, day, low, high, mail, colour]}}}}",
    f"{{{E}table_column_count_to_equal: {{value: 8}}}}",
    f"{{{E}column_values_to_be_in_type_list: {{column_name: id, column_type_list: [bigint, integer]}}}}",
]
FAIL = [
    "{unique: {column_name: lower(kind)}}",
    "{relationships: {column_name: id, to: ref('imported_other'), field: id}}",
    "{not_null: {column_name: id, error_if: '=0'}}",
    f"{{{U}equality: {{compare_model: ref('imported_other')}}}}",
    f"{{{U}equality: {{compare_model: ref('imported_other'), compare_columns: [kind, amount], precision: 1}}}}",
    f"{{{U}cardinality_equality: {{column_name: kind, field: kind, to: ref('imported_other')}}}}",
    f"{{{U}fewer_rows_than: {{compare_model: ref('imported_other')}}}}",
    f"{{{U}not_constant: {{column_name: id, group_by_columns: [id]}}}}",
    f"{{{U}not_empty_string: {{column_name: mail}}}}",
    f"{{{U}mutually_exclusive_ranges: {{lower_bound_column: low, upper_bound_column: high, gaps: required,"
    " zero_length_range_allowed: true}}",
    f"{{{U}expression_is_true: {{expression: id < 3}}}}",
    f"{{{U}accepted_range: {{column_name: low, min_value: id}}}}",
    f"{{{E}column_values_to_match_regex_list: {{column_name: kind, regex_list: [a, b], match_on: all}}}}",
    f"{{{E}column_distinct_values_to_contain_set: {{column_name: kind, value_set: [a, z]}}}}",
    f"{{{E}column_most_common_value_to_be_in_set: {{column_name: kind, value_set: [a], top_n: 1}}}}",
    f"{{{E}column_values_to_be_increasing: {{column_name: kind, sort_column: day}}}}",
    f"{{{E}column_values_to_be_decreasing: {{column_name: id, sort_column: day}}}}",
    f"{{{E}column_values_to_have_consistent_casing: {{column_name: colour}}}}",
    f"{{{E}column_sum_to_be_between: {{column_name: amount, min_value: 2, group_by: [kind]}}}}",
    f"{{{E}column_max_to_be_between: {{column_name: amount, max_value: 3.5, strictly: true}}}}",
    f"{{{E}table_row_count_to_equal_other_table: {{compare_model: ref('imported_other')}}}}",
    f"{{{E}column_distinct_count_to_equal_other_table: {{column_name: id, compare_model: ref('imported_other')}}}}",
    f"{{{E}compound_columns_to_be_unique: {{column_list: [kind, high], row_condition: id > 1}}}}",
    f"{{{E}select_column_values_to_be_unique_within_record: {{column_list: [low, high]}}}}",
    f"{{{E}multicolumn_sum_to_equal: {{column_list: [low, id], sum_total: high}}}}",
    f"{{{E}column_pair_values_to_be_in_set: {{column_A: id, column_B: low, value_pairs_set: [[1, 0]]}}}}",
    f"{{{E}row_values_to_have_data_for_every_n_datepart: {{date_col: day}}}}",
    f"{{{E}row_values_to_have_data_for_every_n_datepart: {{date_col: day, test_start_date: '2025-12-31',"
    " test_end_date: '2026-01-02'}}",
    f"{{{E}row_values_to_have_recent_data: {{column_name: day, datepart: day, interval: 1}}}}",
    f"{{{E}column_values_to_be_within_n_stdevs: {{column_name: amount, group_by: [id], sigma_threshold: 1}}}}",
    f"{{{E}table_columns_to_not_contain_set: {{column_list: [MAIL]}}}}",
    f"{{{E}column_values_to_be_of_type: {{column_name: id, column_type: varchar}}}}",
    f"{{{E}column_values_to_be_null: {{column_name: colour}}}}",
]
SODA_PASS = [
    "row_count between 3 and 4",
    "duplicate_count(kind) = 1",
    "duplicate_percent(kind) < 34",
    "missing_percent(colour) < 50%",
    "missing_count(mail) = 1: {missing regex: '^\\s*$'}",
    "invalid_count(mail) = 0: {valid format: email, missing regex: '^\\s*$'}",
    "avg(amount) > 2",
    "max_length(mail) < 10",
    "stddev(amount) between (1 and 2)",
    "percentile(amount, 0.5) = 2",
    "values in (id, kind) must exist in imported (id, kind)",
    "values in (low) must not exist in imported_recent (id)",
    "spread > 0: {spread expression: max(amount) - min(amount)}",
    "rows = 2: {rows query: SELECT count(*) FROM imported_other}",
    "failed rows: {fail query: SELECT * FROM imported WHERE low > high}",
    "missing_count(colour): {warn: when > 5, fail: when > 10}",
]
SODA_FAIL = [
    "row_count < 3",
    "duplicate_count(kind) = 0: {filter: id > 1}",
    "invalid_count(mail) = 0: {valid format: email}",
    "avg(amount) between (2.2 and 3]",
    "row_count same as imported_other",
    "values in (kind) must exist in imported_other (colour)",
    "failed rows: {fail condition: amount > 3}",
    "missing_count(colour): {fail: when between 1 and 4}",
    "freshness(day) < 1d",
]


def of_dbt(test: str) -> ImportedChecks:
    table = "imported_recent" if "at," in test or "field: at" in test else "imported"
    text = f"models:\n  - name: {table}\n    tests:\n      - {test}\n"
    return import_files(Files(dbt=[SourceText("schema.yml", text)]), ImportOptions(namespace="t"))


def of_soda(test: str) -> ImportedChecks:
    text = f"checks for imported:\n  - {test}\n"
    return import_files(Files(soda=[SourceText("checks.yml", text)]), ImportOptions(namespace="t"))


@pytest.mark.slow  # Spark answers a hundred queries
def test_imported_tests_pass_and_fail_as_they_do_where_they_come_from(system: SystemHarness, tmp_path: Path) -> None:
    checks: dict[str, list[dict[str, Any]]] = {"t.imported_other": []}
    expected: dict[tuple[str, int], tuple[str, str]] = {}
    lists = ((PASS, of_dbt, "pass"), (FAIL, of_dbt, "fail"), (SODA_PASS, of_soda, "pass"), (SODA_FAIL, of_soda, "fail"))
    for tests, importer, outcome in lists:
        for test in tests:
            imported = importer(test)
            assert not imported.left, imported.left
            for table, made in imported.checks.items():
                listed = checks.setdefault(table, [])
                expected |= {(table, len(listed) + number): (test, outcome) for number in range(len(made))}
                listed += made
    (tmp_path / "job.py").write_text(JOB)
    tables = {table: {"checks": made} for table, made in checks.items()}
    text = io.StringIO()
    YAML().dump({"name": "imported", "write": {"job": str(tmp_path / "job.py")}, "tables": tables}, text)
    run = system.command("run", str(system.file(text.getvalue())), "--no-publish", "--json")
    verdicts = {(each["table"], each["index"]): each for each in run.json["checks"]}
    assert len(verdicts) == len(expected) > 100, run.err
    outcomes: dict[tuple[str, str], set[str]] = {}
    for at, (test, outcome) in expected.items():
        verdict = verdicts[at]
        outcomes.setdefault((test, outcome), set()).add("pass" if verdict["verdict"] == "warn" else verdict["verdict"])
    # A test with two thresholds becomes two checks; at least one of them fails if the test does.
    wanted = {"pass": set[str](), "fail": {"fail"}}
    differing = [test for (test, outcome), verdict in outcomes.items() if verdict - {"pass"} != wanted[outcome]]
    assert not differing, [(each, [verdicts[at] for at in expected if expected[at][0] == each]) for each in differing]
