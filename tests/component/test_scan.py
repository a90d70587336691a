"""The audit's scan: each check's query on real rows, with the same answer from DuckDB and Spark."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakehouse.open_catalog import open_catalog
from sluice.checks.registry import REGISTRY
from sluice.settings import read_settings
from tests.harness.audited_table import Table, check_of, seen

COLUMNS = (
    "id INT, big BIGINT, f FLOAT, x DOUBLE, y DOUBLE, dec DECIMAL(9, 2), s STRING, t STRING, flag BOOLEAN, d DATE, "
    "e DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ, `o'x.y ``z` INT, `select` STRING, bin BINARY, parts ARRAY<INT>"
)
BEFORE = [
    "(1, 1, float(0.5), 0.5, 1.5, 1.00, 'a', 'x', true, DATE'2024-01-01', DATE'2024-01-01', "
    "TIMESTAMP'2024-01-01 00:00:00Z', TIMESTAMP_NTZ'2024-01-01 00:00:00', 1, 'q', X'00', array(1))"
]
ADDED = [
    "(2, 2, float(0.1), 1.5, 2.5, 2.50, 'bé', 'ann@example.com', true, DATE'2024-01-02', DATE'2024-01-03', "
    "TIMESTAMP'2024-02-28 23:59:59.123456Z', TIMESTAMP_NTZ'2024-01-02 10:00:00', 1, 'a', X'0102', array(1, 2))",
    "(3, 9007199254740993, float(0.2), 2.5, 2.5, -2.50, '', 'no mail', false, DATE'2024-01-03', DATE'2024-01-02', "
    "TIMESTAMP'2024-01-03 10:30:00Z', TIMESTAMP_NTZ'2024-01-03 10:00:00', NULL, 'b', X'', array())",
    "(4, NULL, float('NaN'), double('NaN'), 1.0, NULL, NULL, 'line\\n', NULL, DATE'2024-01-06', NULL, "
    "NULL, TIMESTAMP_NTZ'2024-01-03 12:00:00', 2, NULL, NULL, NULL)",
    "(NULL, -5, float(-0.0), -0.0, 0.0, 99.99, '日本語', 'a.b', true, NULL, DATE'2024-01-01', "
    "TIMESTAMP'1969-12-31 23:00:00Z', NULL, 3, '100%', X'FF', array(3))",
    "(3, 7, float(1e10), 1e300, -1e300, 0.01, 'bé', 'HTTPS://X', false, DATE'2024-01-05', DATE'2024-01-05', "
    "TIMESTAMP'2024-01-03 10:30:00Z', TIMESTAMP_NTZ'2024-01-04 00:00:00', 3, 'a_b', X'AA', array(1))",
]

CASES: list[tuple[Any, str, Any]] = [
    ({"not_null": "id"}, "fail", 1),
    ({"not_null": {"column": "id", "scope": "table"}}, "fail", 1),
    ({"not_null": {"column": "id", "where": "big > 0"}}, "pass", 0),
    ({"not_null": {"column": "id", "mostly": 0.8}}, "pass", 1),
    ({"not_null": {"column": "id", "mostly": 0.81}}, "fail", 1),
    ({"not_null": {"column": "id", "max_failures": 1}}, "pass", 1),
    ({"not_null": {"column": "id", "warn_if": "> 0", "fail_if": "> 1"}}, "warn", 1),
    ({"not_null": {"column": "id", "warn_if": ">= 20%", "fail_if": "> 20%"}}, "warn", 1),
    ({"not_null": {"column": "id", "severity": "warn"}}, "warn", 1),
    ({"not_null": {"column": "o'x.y `z"}}, "fail", 1),
    ({"not_null": "parts"}, "fail", 1),
    ({"not_null": "bin"}, "fail", 1),
    ({"not_null_proportion": {"column": "d", "min": 0.8}}, "pass", 0.8),
    ({"not_null_proportion": {"column": "d", "min": 0.8, "where": "id >= 3"}}, "pass", 1.0),
    ({"at_least_one": "s"}, "pass", "4 values"),
    ({"at_least_one": {"column": "s", "where": "id = 4"}}, "fail", "0 values"),
    ({"row_count": {"min": 5, "max": 5}}, "pass", 5),
    ({"row_count": {"min": 6, "scope": "table"}}, "pass", 6),
    ({"row_count": {"min": 3, "where": "flag = true"}}, "fail", 2),
    ({"accepted_values": {"column": "s", "values": ["bé", "", "日本語"]}}, "pass", 0),
    ({"accepted_values": {"column": "s", "values": ["bé", "'; DROP"]}}, "fail", 2),
    ({"accepted_values": {"column": "id", "values": [2, 3, 4]}}, "pass", 0),
    ({"accepted_values": {"column": "id", "values": [2, 3, 4, 5], "all_present": True}}, "fail", "0 other, missing: 5"),
    ({"accepted_values": {"column": "f", "values": [0.1, 0.2, 0, 1e10]}}, "fail", 1),
    ({"accepted_values": {"column": "flag", "values": [True]}}, "fail", 2),
    ({"accepted_values": {"column": "dec", "values": [2.5, -2.5, 99.99, "0.01"]}}, "pass", 0),
    ({"accepted_values": {"column": "d", "values": ["2024-01-02", "2024-01-03", "2024-01-05"]}}, "fail", 1),
    ({"not_accepted_values": {"column": "x", "values": [0]}}, "fail", 1),
    ({"not_accepted_values": {"column": "s", "values": ["x\\y", "a'b"]}}, "pass", 0),
    ({"accepted_range": {"column": "id", "min": 2, "max": 4}}, "pass", 0),
    ({"accepted_range": {"column": "id", "min": 2, "max": 4, "inclusive": False}}, "fail", 2),
    ({"accepted_range": {"column": "id", "min": 2.5}}, "fail", 1),
    ({"accepted_range": {"column": "big", "max": 9007199254740992}}, "fail", 1),
    ({"accepted_range": {"column": "x", "min": -1e308}}, "fail", 1),
    ({"accepted_range": {"column": "f", "min": 0.1}}, "fail", 2),
    ({"accepted_range": {"column": "dec", "min": -2.5, "max": 99.99}}, "pass", 0),
    ({"accepted_range": {"column": "s", "min": "a", "max": "c"}}, "fail", 2),
    ({"accepted_range": {"column": "d", "max": "2024-01-05"}}, "fail", 1),
    ({"accepted_range": {"column": "ts", "min": "1970-01-01"}}, "fail", 1),
    ({"accepted_range": {"column": "ts", "max": "2024-02-28T23:59:59.123456Z"}}, "pass", 0),
    ({"accepted_range": {"column": "tn", "min": "2024-01-02 10:00:00.000001"}}, "fail", 1),
    ({"not_nan": "x"}, "fail", 1),
    ({"not_nan": {"column": "f", "mostly": 0.8}}, "pass", 1),
    ({"not_empty_string": "s"}, "fail", 1),
    ({"match_regex": {"column": "t", "pattern": "^[a-z.@ ]+$"}}, "fail", 1),
    ({"match_regex": {"column": "t", "pattern": "a|e"}}, "fail", 1),
    ({"match_regex": {"column": "t", "pattern": "(?i)https"}}, "fail", 4),
    ({"match_regex": {"column": "s", "pattern": "^.{0,3}$"}}, "pass", 0),
    ({"not_match_regex": {"column": "t", "pattern": "\\s$"}}, "fail", 1),
    ({"match_like": {"column": "t", "pattern": "%a%"}}, "fail", 2),
    ({"match_like": {"column": "select", "pattern": "_"}}, "fail", 2),
    ({"not_match_like": {"column": "select", "pattern": "%\\%"}}, "fail", 1),
    ({"not_match_like": {"column": "select", "pattern": "a\\_b"}}, "fail", 1),
    ({"valid_format": {"column": "t", "format": "email"}}, "fail", 4),
    ({"valid_format": {"column": "t", "format": "url"}}, "fail", 5),
    ({"string_length": {"column": "s", "min": 1, "max": 3}}, "fail", 1),
    ({"string_length": {"column": "s", "max": 2}}, "fail", 1),
    ({"unique": "id"}, "fail", 2),
    ({"unique": {"column": "big", "where": "id > 0"}}, "pass", 0),
    ({"unique": {"column": "x"}}, "pass", 0),
    ({"unique": {"column": "s", "scope": "table"}}, "fail", 2),
    ({"unique_combination_of_columns": ["id", "s"]}, "pass", 0),
    ({"unique_combination_of_columns": ["o'x.y `z", "flag"]}, "fail", 1),
    ({"unique_combination_of_columns": {"columns": ["id", "ts"], "max_failures": 2}}, "pass", 2),
    ({"not_constant": "flag"}, "pass", "different values"),
    ({"not_constant": {"column": "s", "where": "id = 2"}}, "fail", "at most 1 value"),
    ({"distinct_count": {"column": "s", "min": 3, "max": 3}}, "pass", 3),
    ({"distinct_count": {"column": "x", "max": 4}}, "fail", 5),
    ({"distinct_ratio": {"column": "s", "min": 0.75}}, "pass", 0.75),
    ({"min_in_range": {"column": "id", "min": 2}}, "pass", 2),
    ({"min_in_range": {"column": "d", "max": "2024-01-01"}}, "fail", "2024-01-02"),
    ({"max_in_range": {"column": "x", "max": 1e300}}, "fail", "NaN"),
    ({"max_in_range": {"column": "ts", "min": "2024-02-28"}}, "pass", "2024-02-28 23:59:59.123456+00:00"),
    ({"max_in_range": {"column": "s", "max": "bé"}}, "fail", "日本語"),
    ({"mean_in_range": {"column": "id", "min": 3, "max": 3}}, "pass", 3),
    ({"mean_in_range": {"column": "dec", "min": 25, "max": 25}}, "pass", 25),
    ({"mean_in_range": {"column": "x", "min": 0}}, "fail", "NaN"),
    ({"mean_in_range": {"column": "id", "min": 3, "where": "id < 0"}}, "fail", "no values"),
    ({"sum_in_range": {"column": "big", "min": 9007199254740997, "max": 9007199254740997}}, "pass", 9007199254740997),
    ({"sum_in_range": {"column": "dec", "max": 100}}, "pass", 100),
    ({"stddev_in_range": {"column": "id", "max": 0.82}}, "pass", 0.816496580928),
    ({"quantile_in_range": {"column": "id", "quantile": 0.5, "min": 3, "max": 3}}, "pass", 3),
    ({"quantile_in_range": {"column": "dec", "quantile": 0.25, "max": 0}}, "pass", -0.6175),
    ({"compare_columns": {"left": "d", "operator": "<=", "right": "e"}}, "fail", 1),
    ({"compare_columns": {"left": "x", "operator": ">", "right": "y"}}, "fail", 3),
    ({"compare_columns": {"left": "id", "operator": "!=", "right": "big"}}, "fail", 1),
    ({"compare_columns": {"left": "id", "operator": "<", "right": "dec"}}, "fail", 2),
    ({"freshness": {"column": "ts", "max_age": "2d"}}, "pass", "2024-02-28 23:59:59.123456+00:00"),
    ({"freshness": {"column": "d", "max_age": "2d"}}, "fail", "2024-01-06"),
    ({"row_per_date_part": {"column": "d"}}, "fail", "1 of 5 days without a row"),
    ({"row_per_date_part": {"column": "tn", "last": "2024-01-04 01:00:00"}}, "pass", "0 of 3 days without a row"),
    ({"row_per_date_part": {"column": "ts", "part": "month", "where": "id=3"}}, "pass", "0 of 1 months without a row"),
    ({"sequential_values": {"column": "id"}}, "fail", 1),
    ({"sequential_values": {"column": "d", "datepart": "day", "max_failures": 1}}, "pass", 1),
    ({"sequential_values": {"column": "id", "group_by": ["flag"]}}, "fail", 1),
    ({"expression_is_true": "id > 1 AND big IS NOT NULL"}, "fail", 2),
    ({"expression_is_true": {"expression": "d <= DATE '2024-01-06'", "where": "d IS NOT NULL"}}, "pass", 0),
    ({"expression_is_true": {"expression": "id % 2 = 0", "max_failures": 3}}, "pass", 3),
    ({"expression_is_true": "lower(t) = t"}, "fail", 1),
]  # fmt: skip
TO_SPARK = ("(?i)", "id % 2", "lower(t)", "'id', 'operator': '<', 'right': 'dec'", "parts", "flag = true and")


@pytest.fixture(scope="module")
def rich(spark: SparkSession, stack: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Table:
    table = Table(spark, open_catalog(read_settings(stack)), "i.rich", tmp_path_factory.mktemp("duckdb"))
    table.fill(COLUMNS, BEFORE, ADDED)
    return table


def test_every_check_says_the_same_by_either_engine(rich: Table) -> None:
    checks = [check_of(written) for written, _, _ in CASES]
    results = zip(CASES, rich.by_duckdb(checks), rich.by_spark(checks), strict=True)
    wrong = []
    for (written, verdict, observed), by_duckdb, by_spark in results:
        expected = (verdict, observed)
        if seen(by_spark) != expected:
            wrong.append(f"{written}: Spark found {seen(by_spark)}, expected {expected}")
        if by_duckdb is None:
            if not any(part in str(written) for part in TO_SPARK):
                wrong.append(f"{written}: DuckDB was not asked")
        elif (
            seen(by_duckdb) != expected
            or by_duckdb.failed_rows != by_spark.failed_rows
            or by_duckdb.sample != by_spark.sample
        ):
            observed_by_duckdb = f"{seen(by_duckdb)} {by_duckdb.sample}"
            wrong.append(f"{written}: DuckDB found {observed_by_duckdb}, expected {expected} {by_spark.sample}")
        if (
            by_spark.failed_rows
            and not by_spark.sample
            and by_spark.verdict != "pass"
            and by_spark.check != "not_null_proportion"
        ):
            wrong.append(f"{written}: no sample")
    assert not wrong, "\n".join(wrong)


def test_metadata_never_contradicts_the_rows(rich: Table) -> None:
    checks = [check_of(written) for written, _, _ in CASES]
    proven = [(case, result) for case, result in zip(CASES, rich.by_metadata(checks), strict=True) if result]
    wrong = [f"{written}: {result}" for (written, verdict, _), result in proven if result.verdict != verdict]
    assert not wrong
    assert len(proven) > 15


def test_each_check_that_scans_rows_is_among_the_cases() -> None:
    scanned = {check_of(written).check for written, _, _ in CASES}
    metadata_only = {name for name, cls in REGISTRY.items() if cls.proof == "always"}
    without_case = {"sql", "relationships", "equal_row_count"}
    assert set(REGISTRY) - scanned - metadata_only == without_case
