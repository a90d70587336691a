"""The rows of the audit's scan: added rows, deleted rows, older schemas, and scans beyond the limits of DuckDB."""

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
from lakehouse.audit.audited_tables import AuditedTables
from lakehouse.audit.report_store import ReportStore
from sluice.audit.query_builder import AuditQuery
from sluice.contracts.audit import AuditInput, ScanInput
from sluice.contracts.references import RunRef
from sluice.metadata.statistics import SchemaField
from sluice.pipeline.table import Table as PipelineTable
from sluice.settings import Settings
from sluice.sql.dialect import DUCKDB
from tests.harness.activity import run_activity
from tests.harness.audited_table import Table, check_of, seen
from tests.harness.warm_branch import BRANCH


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
