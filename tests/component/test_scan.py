"""The audit's scan: each check's query on real rows, with the same answer from DuckDB and Spark."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pytest
from pyarrow import parquet
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from activities.audit.scan_files import ScanFilesActivity
from activities.audit.scan_tables import TableScanner
from engine.duckdb_session import DuckDBSession, ParquetView
from engine.scan_engines import in_process_engines
from lakehouse.audited_tables import AuditedTables
from lakehouse.open_catalog import open_catalog
from lakehouse.report_store import ReportStore
from sluice.audit.query_builder import AuditQuery
from sluice.checks import REGISTRY
from sluice.checks.verdicts import CheckResult
from sluice.contracts.audit import AuditInput, ScanInput
from sluice.contracts.references import RunRef
from sluice.metadata.statistics import SchemaField
from sluice.pipeline.table import Table as PipelineTable
from sluice.settings import Settings, read_settings
from sluice.sql.dialect import DUCKDB
from tests.harness.activity import run_activity
from tests.harness.audited_table import Table, check_of
from tests.harness.warm_branch import BRANCH

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


@pytest.fixture
def table(spark: SparkSession, stack: dict[str, str], request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return Table(spark, open_catalog(read_settings(stack)), f"i.{request.node.name.split('[')[0]}", tmp_path)


def seen(result: CheckResult) -> tuple[Any, ...]:
    assert not result.message, result.message
    return result.verdict, result.observed


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
    tested_below = {"sql", "relationships", "equal_row_count"}
    assert set(REGISTRY) - scanned - metadata_only == tested_below


def test_only_added_rows_count_unless_the_scope_is_the_table(table: Table) -> None:
    table.fill("id INT", before=["(NULL)", "(1)", "(1)"], added=["(2)", "(3)"])
    both = [{"unique": "id"}, {"unique": {"column": "id", "scope": "table"}}]
    checks = [check_of(each) for each in both]
    for results in (table.by_duckdb(checks), table.by_spark(checks)):
        assert [seen(each) for each in results if each] == [("pass", 0), ("fail", 2)]


def test_a_key_that_main_has_already_is_not_unique(table: Table) -> None:
    table.fill("id INT, part INT", before=["(1, 1)", "(2, 1)", "(NULL, 1)"], added=["(2, 1)", "(NULL, 1)", "(NULL, 1)"])
    checks = [check_of({"unique": "id"}), check_of({"unique_combination_of_columns": ["id", "part"]})]
    for results in (table.by_duckdb(checks), table.by_spark(checks)):
        assert [seen(each) for each in results if each] == [("fail", 1), ("fail", 3)]


def test_files_without_a_common_key_are_not_read(table: Table) -> None:
    table.fill("id INT", before=["(1)", "(5)"], added=["(6)"])
    table.insert(["(7)", "(8)"])
    (result,) = table.by_duckdb([check_of({"unique": "id"})])
    assert result and (result.verdict, result.files) == ("pass", 2)
    table.insert(["(5)"])
    (result,) = table.by_duckdb([check_of({"unique": "id"})])
    assert result and (result.verdict, result.observed, result.files) == ("fail", 1, 4)


def test_values_of_another_table(table: Table, spark: SparkSession) -> None:
    spark.sql("CREATE TABLE i.parents (id BIGINT, name STRING)")
    spark.sql("INSERT INTO i.parents VALUES (1, 'a'), (2, 'b'), (NULL, 'c')")
    table.fill("parent INT, big BIGINT", before=["(9, 1)"], added=["(1, 1)", "(2, 1)", "(NULL, 1)", "(3, 1)", "(3, 2)"])
    written = [
        {"relationships": {"column": "parent", "to": "i.parents", "field": "id"}},
        {
            "relationships": {
                "column": "parent",
                "to": "i.parents",
                "field": "id",
                "where": "big = 2",
                "max_failures": 1,
            }
        },
        {"equal_row_count": {"to": "i.parents", "min_ratio": 1, "max_ratio": 2}},
    ]
    checks = [check_of(each) for each in written]
    expected = [("fail", 2), ("pass", 1), ("pass", "5, and 3 in i.parents")]
    by_duckdb, by_spark = table.by_duckdb(checks), table.by_spark(checks)
    assert [seen(each) for each in by_duckdb if each] == expected == [seen(each) for each in by_spark]
    assert by_duckdb[0] and by_duckdb[0].sample == by_spark[0].sample == [
        {"parent": 3, "big": 1},
        {"parent": 3, "big": 2},
    ]
    missing = check_of({"relationships": {"column": "parent", "to": "i.nobody", "field": "id"}})
    assert "no table i.nobody" in str(table.audited([missing]).problem(missing))


WITHOUT_ROW_2 = ({"not_null": "s"}, {"not_null": "id"}, {"row_count": 2}, {"unique": "id"})


@pytest.mark.parametrize("version", [2, 3])
def test_rows_that_are_deleted_in_place_are_left_out(table: Table, version: int) -> None:
    table.name += str(version)
    more = (
        f"PARTITIONED BY (p) TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read', "
        "'write.update.mode' = 'merge-on-read')"
    )
    before = ["(1, 'x', 'a')", "(2, 'x', 'b')", "(3, 'x', NULL)", "(1, 'y', 'c')"]
    table.fill("id INT, p STRING, s STRING", before, ["(4, 'x', NULL)", "(5, 'x', 'e')", "(5, 'x', 'f')"], more)
    table.sql("DELETE FROM {t} WHERE s IS NULL")
    table.sql("DELETE FROM {t} WHERE s = 'f'")
    table.sql("DELETE FROM {t} WHERE s = 'b'")
    written: list[tuple[Any, str, Any]] = [
        ({"not_null": "s"}, "pass", 0),
        ({"not_null": {"column": "s", "scope": "table"}}, "pass", 0),
        ({"row_count": {"min": 3, "max": 3, "scope": "table"}}, "pass", 3),
        ({"row_count": 1}, "pass", 1),
        ({"unique_combination_of_columns": {"columns": ["id", "p"], "scope": "table"}}, "pass", 0),
        ({"unique": {"column": "id", "scope": "table"}}, "fail", 2),
        ({"accepted_values": {"column": "s", "values": ["a", "c"], "scope": "table"}}, "fail", 1),
    ]
    checks = [check_of(each) for each, _, _ in written]
    expected = [(verdict, observed) for _, verdict, observed in written]
    assert [seen(each) for each in table.by_spark(checks)] == expected
    assert [seen(each) for each in table.by_duckdb(checks) if each] == expected


def test_a_second_delete_of_rows_of_the_same_files(table: Table) -> None:
    """One of two deletion vectors in one file is replaced: PyIceberg does not tell which one, so Spark answers.

    If the other vector of that file is not needed, DuckDB does not read the file.
    """
    more = "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    table.fill("id INT, s STRING", ["(1, 'a')", "(2, 'b')", "(3, 'c')"], ["(4, 'd')", "(5, 'e')", "(6, 'f')"], more)
    table.sql("DELETE FROM {t} WHERE id IN (1, 4)")
    table.sql("DELETE FROM {t} WHERE id = 5")
    of_second = check_of({"accepted_range": {"column": "id", "max": 5, "scope": "table"}})
    of_both = check_of({"accepted_range": {"column": "id", "min": 3, "max": 5, "scope": "table"}})
    assert [seen(each) for each in table.by_spark([of_second, of_both])] == [("fail", 1), ("fail", 2)]
    assert [seen(each) for each in table.by_duckdb([of_second]) if each] == [("fail", 1)]
    with pytest.raises(duckdb.InvalidInputException, match="2 deletion vectors, of which 1 are live"):
        table.by_duckdb([of_both])


def test_rows_that_vectors_of_one_file_delete_are_all_counted(table: Table) -> None:
    more = "TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    table.fill("id INT, s STRING", ["(1, 'a')", "(2, 'b')"], [], more)
    for first in (3, 5):
        table.insert([f"({first}, 'x')", f"({first + 1}, 'y')"])
    table.mark()
    table.sql("DELETE FROM {t} WHERE id % 2 = 1")
    table.sql("DELETE FROM {t} WHERE id = 2")
    live = table.state().live
    assert {entry.data_file.record_count for entry in live.added_deletes} == {1, 2}
    assert (live.deleted_rows, len(live.marked_files)) == (4, 3)
    (proven,) = table.by_metadata([check_of({"deleted_rows": {"max": 3}})])
    assert proven and seen(proven) == ("fail", 4)


def test_equality_deletes_are_left_to_spark(table: Table) -> None:
    more = "TBLPROPERTIES ('format-version' = '2')"
    table.fill("id INT, s STRING", before=[], added=["(1, 'a')", "(2, NULL)", "(3, 'c')"], more=more)
    delete_by_value(table, "id", 2)
    checks = [check_of(each) for each in WITHOUT_ROW_2]
    assert table.by_metadata(checks)[0] is None
    assert table.by_metadata(checks)[2] is None
    proven = table.by_metadata(checks)[1]
    assert proven and proven.verdict == "pass"
    assert table.by_duckdb(checks) == [None] * 4
    assert [seen(each) for each in table.by_spark(checks)] == [("pass", 0), ("pass", 0), ("pass", 2), ("pass", 0)]


def delete_by_value(table: Table, column: str, value: int) -> None:
    """Commit an equality delete by Iceberg's own classes, as Flink writes them."""
    jvm: Any = table.spark.sparkContext._jvm
    iceberg = jvm.org.apache.iceberg
    loaded = iceberg.spark.Spark3Util.loadIcebergTable(table.spark._jsparkSession, table.name)
    field = loaded.schema().findField(column)
    rows = pyarrow.schema([pyarrow.field(column, pyarrow.int32(), metadata={"PARQUET:field_id": str(field.fieldId())})])
    path = table.scratch / f"{uuid.uuid4()}.parquet"
    parquet.write_table(pyarrow.table({column: pyarrow.array([value], pyarrow.int32())}, schema=rows), path)
    builder = iceberg.FileMetadata.deleteFileBuilder(loaded.spec())
    ids = table.spark.sparkContext._gateway.new_array(jvm.int, 1)  # type: ignore[union-attr]
    ids[0] = field.fieldId()
    deletes = builder.ofEqualityDeletes(ids).withPath(str(path)).withFormat("PARQUET")
    deletes = deletes.withFileSizeInBytes(path.stat().st_size).withRecordCount(1).build()
    loaded.newRowDelta().addDeletes(deletes).commit()
    table.sql("REFRESH TABLE {t}")


def test_files_from_before_the_schema_changed(table: Table) -> None:
    table.fill("id INT, f FLOAT, dec DECIMAL(5, 2), old STRING", before=[], added=["(1, float(0.5), 1.00, 'x')"])
    table.sql("ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT")
    table.sql("ALTER TABLE {t} ALTER COLUMN f TYPE DOUBLE")
    table.sql("ALTER TABLE {t} ALTER COLUMN dec TYPE DECIMAL(9, 2)")
    table.sql("ALTER TABLE {t} RENAME COLUMN old TO `new name`")
    table.sql("ALTER TABLE {t} ADD COLUMN late INT")
    table.insert(["(5000000000, 0.25, 1234567.00, 'y', 7)"])
    written: list[tuple[Any, str, Any]] = [
        ({"accepted_range": {"column": "id", "min": 1, "max": 5000000000}}, "pass", 0),
        ({"accepted_range": {"column": "f", "min": 0.25, "max": 0.4}}, "fail", 1),
        ({"accepted_range": {"column": "dec", "max": 1000}}, "fail", 1),
        ({"accepted_values": {"column": "new name", "values": ["x", "y"]}}, "pass", 0),
        ({"not_null": "late"}, "fail", 1),
        ({"sum_in_range": {"column": "id", "max": 5000000001}}, "pass", 5000000001),
        ({"unique": "new name"}, "pass", 0),
    ]
    checks = [check_of(each) for each, _, _ in written]
    expected = [(verdict, observed) for _, verdict, observed in written]
    assert [seen(each) for each in table.by_duckdb(checks) if each] == expected
    assert [seen(each) for each in table.by_spark(checks)] == expected
    for proven, (verdict, _) in zip(table.by_metadata(checks), expected, strict=True):
        assert proven is None or proven.verdict == verdict
    assert table.by_metadata(checks)[0] is not None
    assert table.by_metadata(checks)[4] is None


def test_only_undecided_files_are_read(table: Table) -> None:
    table.fill("id INT", before=[], added=["(1)", "(2)"])
    table.insert(["(50)", "(150)"])
    table.insert(["(200)", "(201)", "(NULL)"])
    check = check_of({"accepted_range": {"column": "id", "max": 100}})
    for result in (*table.by_duckdb([check]), *table.by_spark([check])):
        assert result and (result.verdict, result.observed, result.files) == ("fail", 3, 1)
        assert 0 < result.bytes < 200


def test_a_query_returns_the_bad_rows(table: Table) -> None:
    table.fill("id INT", before=[], added=["(1)", "(2)"])
    checks = [
        check_of({"sql": f"SELECT * FROM {table.name} WHERE id > 1 -- the end"}),
        check_of({"sql": f"WITH a AS (SELECT 1) SELECT * FROM {table.name} WHERE id > 2;"}),
        check_of({"sql": "SELECT * FROM i.nowhere"}),
    ]
    assert table.by_duckdb(checks) == [None] * 3
    failed, none, broken = table.by_spark(checks)
    assert (failed.verdict, failed.sample) == ("fail", [{"id": 2}])
    assert none.verdict == "pass"
    assert (broken.verdict, "nowhere" in broken.message) == ("error", True)


def test_a_retryable_error_fails_the_job_until_the_last_try(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> None:
        raise PySparkException("Failed to execute GET request against Nessie")

    table.fill("id INT", before=[], added=["(1)"])
    monkeypatch.setattr(AuditQuery, "_run_aggregates", away)
    check = check_of({"unique": "id"})
    with pytest.raises(PySparkException):
        table.by_spark([check], last_attempt=False)
    assert "Nessie" in table.by_spark([check], last_attempt=True)[0].message


def test_the_scope_of_a_change_of_real_snapshots(table: Table) -> None:
    table.fill(
        "id INT, day DATE",
        before=["(1, DATE'2024-01-01')", "(2, DATE'2024-01-02')"],
        added=["(3, DATE'2024-01-02')", "(4, DATE'2024-01-03')"],
        more="PARTITIONED BY (day)",
    )
    appended: list[tuple[Any, str, Any]] = [
        ("append_only", "pass", "append"),
        ({"deleted_rows": 0}, "pass", 0),
        ({"changed_partitions": ["day=2024-01-02", "day=2024-01-03"]}, "pass", "day=2024-01-02, day=2024-01-03"),
        ({"changed_partitions": {"max": 1}}, "fail", "day=2024-01-02, day=2024-01-03"),
        ({"changed_tables": [table.name]}, "pass", table.name),
        ({"added_files": {"min": 2, "max": 2}}, "pass", 2),
        ({"added_bytes": {"min": 100, "max": "1MB"}}, "pass", None),
        ("partitioning_unchanged", "pass", "unchanged"),
        ("sort_order_unchanged", "pass", "unchanged"),
        ("schema_drift", "pass", "unchanged"),
        ({"volume": {"min_ratio": 1, "max_ratio": 1, "at_least": 1}}, "pass", None),
        ({"volume": {"deviations": 1}}, "warn", None),
    ]
    assert_proven(table, appended)
    table.mark()
    table.sql("DELETE FROM {t} WHERE day = DATE'2024-01-01'")
    table.sql("ALTER TABLE {t} REPLACE PARTITION FIELD day WITH month(day)")
    table.sql("ALTER TABLE {t} WRITE ORDERED BY id")
    table.sql("ALTER TABLE {t} RENAME COLUMN id TO number")
    rewritten: list[tuple[Any, str, Any]] = [
        ("append_only", "fail", None),
        ({"deleted_rows": 0}, "fail", 1),
        ({"changed_partitions": ["day=2024-01-01"]}, "pass", "day=2024-01-01"),
        ("partitioning_unchanged", "fail", None),
        ("sort_order_unchanged", "fail", None),
        ("schema_drift", "fail", "id is renamed to number"),
        ({"schema_drift": ["renamed"]}, "pass", None),
        ({"volume": {"deviations": 3, "at_least": 2}}, "warn", None),
    ]
    assert_proven(table, rewritten)


def assert_proven(table: Table, cases: list[tuple[Any, str, Any]]) -> None:
    results = table.by_metadata([check_of(written) for written, _, _ in cases])
    for (written, verdict, observed), result in zip(cases, results, strict=True):
        assert result and result.verdict == verdict, (written, result)
        assert observed in (None, result.observed), (written, result)


def test_no_rows_are_an_answer_too(table: Table) -> None:
    table.fill("id INT", before=["(1)"], added=[])
    checks = [check_of({"max_in_range": {"column": "id", "max": 5}}), check_of({"unique": "id"})]
    for results in (table.by_duckdb(checks), table.by_spark(checks)):
        assert [seen(each) for each in results if each] == [("fail", "no values"), ("pass", 0)]


def test_what_is_beyond_duckdb_is_handed_back(
    table: Table, stack: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_much(*_: object, **__: object) -> None:
        raise duckdb.OutOfMemoryException("failed to allocate")

    table.fill("id INT", before=[], added=["(1)", "(2)"])
    settings = Settings.of(sluice_home=table.scratch)
    audit = AuditInput(
        run_ref=RunRef(run_id="r", workflow_id="w", pipeline="p", label="p", attempt=1),
        branch=BRANCH,
        base=table.catalog.initialize_main(),
        head=table.catalog.head(BRANCH),
        tables={table.name: PipelineTable.model_validate({"checks": [{"check": "unique", "column": "id"}]})},
    )
    scanner = TableScanner(AuditedTables(table.catalog, {}), ReportStore(settings.storage.lake, {}), settings.storage)
    scan = ScanFilesActivity(scanner, in_process_engines(settings.scan))
    scan_input = ScanInput(audit=audit, undecided={table.name: [0]})
    plan = asyncio.run(run_activity(scan.scan_files, scan_input))
    assert [check.verdict for check in plan.decided] == ["pass"] and not plan.undecided
    monkeypatch.setattr(DuckDBSession, "answer", too_much)
    plan = asyncio.run(run_activity(scan.scan_files, scan_input))
    assert plan.decided == [] and plan.undecided == {table.name: [0]}


def test_a_scan_spills_within_its_memory(tmp_path: Path) -> None:
    columns = {
        "id": pyarrow.array(range(600_000)),
        "s": pyarrow.array([f"some longer key {n}" for n in range(600_000)]),
    }
    schema = pyarrow.schema(
        [pyarrow.field(name, each.type, metadata={"PARQUET:field_id": str(number)}) for number, (name, each) in
         enumerate(columns.items(), 1)]
    )  # fmt: skip
    path = tmp_path / "big.parquet"
    parquet.write_table(pyarrow.table(columns, schema=schema), path)
    view = ParquetView("sluice_rows", [SchemaField(1, "id", "long"), SchemaField(2, "s", "string")], [str(path)])
    query = check_of({"unique": "s"}).build_query(DUCKDB, {"id": "long", "s": "string"})
    with DuckDBSession("40MB", tmp_path / "spill") as session:
        types = {"id": "long", "s": "string"}
        answers = session.answer([view], {"k": query}, types, with_other_rows=False, sample_rows=5)
    assert answers["k"].metrics["failed"] == 0
