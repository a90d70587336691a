"""The decisions of an audit: planning, engine choice, carry-over, file selection, verdicts, row quarantine."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakehouse.audit.audited_tables import AuditedTables
from sluice.audit.answers import check_key, verdicts
from sluice.audit.carry_over import carried_over_verdicts
from sluice.audit.engine_choice import accepted_checks, duckdb_refusals, field_id_problem
from sluice.audit.files import other_live_files, referenced_files
from sluice.audit.planner import plan_audit, prove_checks, sample_group
from sluice.audit.scan_groups import ScanGroup, scan_groups
from sluice.audit.spark_target import spark_target
from sluice.audit.tables import AuditedTable, ReferencedTable, referenced_tables
from sluice.checks.base import Check, TableReference
from sluice.checks.verdicts import CheckResult
from sluice.contracts.audit import AuditInput
from sluice.contracts.spark_jobs import ScanAnswer
from sluice.metadata.statistics import ColumnStatistics, DeleteFile, FileStatistics, SchemaField
from sluice.pipeline.table import Table
from sluice.publishing.bad_rows import bad_row_limit, bad_rows_of_table, quarantinable_checks
from sluice.sql.dialect import DUCKDB, SPARK
from tests.harness.audit_inputs import NOT_NULL, RANGE, UNIQUE, audit_input, check, file, table
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake
from tests.harness.quarantined_run import LakeRun

RELATED = {"relationships": {"column": "c", "to": "n.keys", "field": "id"}}
MORE_THAN_ALL = 2**40


def group(audited: AuditedTable) -> ScanGroup:
    (only,) = scan_groups(audited, dict(enumerate(audited.checks)), DUCKDB)[0]
    return only


def refusal(audited: AuditedTable, max_bytes: int = MORE_THAN_ALL) -> str | None:
    return duckdb_refusals(audited, dict(enumerate(audited.checks)), max_bytes).get(0)


def verdict(index: int = 0, kind: Any = "fail", name: str = "n.t") -> CheckResult:
    return CheckResult(table=name, index=index, check="x", columns=[], verdict=kind)


def test_which_tables_cannot_be_read_by_field_id_alone() -> None:
    assert field_id_problem({"p": "1"}, has_defaults=False) is None
    assert field_id_problem({}, has_defaults=True) == "a column has a default"
    mapped = {"schema.name-mapping.default": "[]"}
    assert field_id_problem(mapped, has_defaults=False) == "files are mapped by name"


def deleted_from(path: str, rows: int) -> FileStatistics:
    """Return a file with position deletes whose rows are known exactly."""
    deletes = [DeleteFile("/deletes.parquet", "PARQUET", rows)]
    return replace(file(path), deletes=True, delete_files=deletes, deletes_problem="")


def named(audited: AuditedTable, column: str) -> AuditedTable:
    return replace(audited, fields=[*audited.fields, SchemaField(99, column, "int")])


@pytest.mark.parametrize(
    ("audited", "reason"),
    [
        (table(RANGE, added=[file("/a")]), None),
        (table(RANGE, added=[file("file:///a")]), None),
        (table(RANGE, added=[file("s3://b/a")]), None),
        (table(RANGE, added=[file("s3a://b/a")]), None),
        (table(RANGE, added=[file("gs://b/a")]), "neither local nor on S3"),
        (table(RANGE, added=[file("/a", form="ORC")]), "ORC"),
        (table(RANGE, added=[file("/a", may_lack_columns=True)]), "may lack a column"),
        (table(RANGE, added=[file("/a", deletes=True)]), "row-level deletes"),
        (table(RANGE, added=[deleted_from("/a", 5)]), None),
        (table(RANGE, added=[deleted_from("/a", 6_000_000), deleted_from("/b", 6_000_000)]), None),  # one file of both
        (table(RANGE, added=[deleted_from("/a", 10_000_001)]), "more than 10,000,000 rows"),
        (named(table(RANGE, added=[deleted_from("/a", 5)]), "File_Row_Number"), "a column is called File_Row_Number"),
        (named(table(RANGE, added=[file("/a")]), "file_row_number"), None),
        (table(RANGE, added=[file("/a*")]), "wildcard"),
        (table({"not_null": "list"}, added=[file("/a")]), "list<int>"),
        (table(RANGE, added=[file("/a")], field_id_problem="files are mapped by name"), "by name"),
        (table({"sql": "SELECT 1"}, added=[file("/a")]), "a query of one's own"),
        (table(UNIQUE, added=[file("/a", 1, 5)], live=[file("/b", 4, 9, form="AVRO")]), "AVRO"),
        (table(UNIQUE, added=[file("/a", 1, 5)], live=[file("/b", 6, 9, form="AVRO")]), None),  # has no such key
    ],
)
def test_which_checks_duckdb_refuses(audited: AuditedTable, reason: str | None) -> None:
    refused = refusal(audited)
    assert refused is None if reason is None else reason in (refused or "")


def test_duckdb_refuses_more_bytes_than_its_limit() -> None:
    audited = table(RANGE, added=[file("/a"), file("/b")])
    assert refusal(audited, 200) is None
    assert "more than 199 bytes" in (refusal(audited, 199) or "")


class RefusesOdd:
    def refusals(self, table: AuditedTable, checks: Any) -> dict[int, str]:
        return {index: "odd" for index in checks if index % 2}


class RefusesAll:
    def refusals(self, table: AuditedTable, checks: Any) -> dict[int, str]:
        return dict.fromkeys(checks, "no")


def test_a_check_goes_to_the_first_engine_that_does_not_refuse_it() -> None:
    audited = table(RANGE, NOT_NULL, UNIQUE)
    checks = dict(enumerate(audited.checks))
    assert list(accepted_checks(audited, checks, [RefusesAll(), RefusesOdd()])) == [0, 2]
    assert accepted_checks(audited, checks, [RefusesAll()]) == accepted_checks(audited, checks, []) == {}


def test_a_table_is_audited_as_one_with_requeued_rows(tmp_path: Path) -> None:
    lake = MemoryLake(MemoryCatalog(), tmp_path)
    run = LakeRun(lake)
    branch = run.open()
    run.append(branch, 1)
    listed = {"t.x": Table.model_validate({"checks": [{"check": "row_count", "min": 2}]})}
    ends = {"base": branch.base, "head": lake.catalog.head(branch.name)}
    for requeued, level in ((False, "fail"), (True, "pass")):
        input = AuditInput(run_ref=run.ref, branch=branch.name, tables=listed, requeued=requeued, **ends)
        ((_, audited),) = AuditedTables(lake.catalog, {}).load(input)
        assert audited
        (proven,) = prove_checks(audited.checks, audited.statistics).values()
        assert proven and proven.level == level


def test_a_plan_decides_what_metadata_proves_and_assigns_the_others() -> None:
    written = [NOT_NULL, RANGE, {"not_null": "missing"}, UNIQUE, {"accepted_range": {"column": "c", "max": 3}}]
    audited = table(*written, added=[file("/a", 4, 9)])
    carried = {("n.t", 3): verdict(3, "pass")}
    asked: list[str] = []

    def sample(_: AuditedTable, failing: Check) -> list[dict[str, Any]]:
        asked.append(failing.check)
        return [{"c": 4}]

    undecidable = {"match_regex": {"column": "s", "pattern": "a"}}
    audited = replace(audited, checks=[*audited.checks, check(undecidable), check(undecidable)])
    input = audit_input(t=[*written, undecidable, undecidable], dropped=[UNIQUE])
    tables = [("n.t", audited), ("n.dropped", None)]
    plan = plan_audit(input, tables, carried, [RefusesOdd()], sample)
    kinds = [(each.index, each.verdict, each.answered_by) for each in plan.decided if each.table == "n.t"]
    assert kinds == [(0, "pass", "metadata"), (1, "pass", "metadata"), (2, "error", None), (3, "pass", None),
                     (4, "fail", "metadata")]  # fmt: skip
    assert (plan.files, plan.undecided) == ({"n.t": [6]}, {"n.t": [5]})
    assert plan.decided[-1].message == "there is no table n.dropped on the branch"
    assert asked == ["accepted_range"] and plan.decided[4].sample == [{"c": 4}]


def test_verdicts_survive_a_rebase_if_they_depend_on_the_added_rows_alone() -> None:
    written = [NOT_NULL, UNIQUE, RELATED, {"not_null": {"column": "c", "scope": "table"}}, {"row_count": 1}]
    checks = {"n.t": [check(each) for each in written]}
    earlier = [verdict(index, "pass") for index in range(len(written))]
    assert list(carried_over_verdicts(checks, earlier)) == [("n.t", 0)]
    assert carried_over_verdicts(checks, earlier[1:]) == {}


def test_other_live_files_are_those_that_may_hold_a_key_of_the_added_ones() -> None:
    audited = table(UNIQUE, added=[file("/a", 10, 20)], live=[file("/b", 1, 9), file("/c", 20, 30), file("/d")])
    scanned = group(audited)
    assert [each.path for each in scanned.other_files] == ["/c", "/d"]
    combined = {"unique_combination_of_columns": {"columns": ["c", "s"]}}
    with_nulls = replace(file("/a", 10, 20), columns={"c": ColumnStatistics(nulls=1, lower=10, upper=20)})
    several = group(table(combined, added=[with_nulls], live=[file("/b", 1, 9)]))
    assert [each.path for each in other_live_files(several.table, several.queries[0], several.files)] == ["/b"]


def referenced(*files: FileStatistics, kind: str = "int", **more: Any) -> dict[str, ReferencedTable]:
    reference = TableReference(table="n.keys", columns=["id"])
    return {"n.keys": ReferencedTable(reference, [SchemaField(1, "id", kind)], files, **more)}


def key_file(path: str, low: int, high: int) -> FileStatistics:
    return FileStatistics(rows=5, columns={"id": ColumnStatistics(nulls=0, lower=low, upper=high)}, path=path)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (referenced(key_file("/k", 1, 5)), None),
        (referenced(key_file("/k", 1, 5), kind="long"), None),
        (referenced(key_file("/k", 1, 5), field_id_problem="files are mapped by name"), "n.keys: files are mapped by"),
        (referenced(key_file("/k", 8, 9), field_id_problem="a column has a default"), "n.keys: a column has a default"),
        (referenced(key_file("/k", 1, 5), kind="string"), "keys of int and string are compared"),
        (referenced(key_file("/k", 1, 5), kind="decimal(9, 0)"), "keys of decimal and int are compared"),
        (referenced(replace(key_file("/k", 1, 5), form="ORC")), "ORC"),
    ],
)
def test_duckdb_refuses_keys_that_it_may_read_or_match_otherwise(
    keys: dict[str, ReferencedTable], reason: str | None
) -> None:
    """Imported files have no field ids: DuckDB reads NULL from them, and every key would be missing."""
    refused = refusal(table(RELATED, added=[file("/a", 2, 3)], referenced=keys))
    assert refused is None if reason is None else reason in (refused or "")


def test_a_referenced_table_is_read_where_a_key_may_be() -> None:
    keys = referenced(key_file("/k1", 1, 5), key_file("/k2", 6, 9))
    one = group(table(RELATED, added=[file("/a", 2, 3)], referenced=keys))
    assert [each.path for each in one.files_beside(0)] == ["/k1"]
    two = group(table(RELATED, RELATED, added=[file("/a", 2, 3)], referenced=keys))
    read = referenced_files(two.table, keys["n.keys"], two.queries.values(), two.files)
    assert [each.path for each in read] == ["/k1", "/k2"]  # both checks use one view


def test_why_a_check_cannot_be_applied() -> None:
    keys = referenced(key_file("/k1", 1, 5))
    assert table(RELATED, referenced=keys).problem(check(RELATED)) is None
    assert table(RELATED).problem(check(RELATED)) == "there is no table n.keys on the branch"
    wrong = check({"relationships": {"column": "c", "to": "n.keys", "field": "ids"}})
    assert "n.keys has no column 'ids'" in (table(RELATED, referenced=keys).problem(wrong) or "")
    assert "there is no column 'x'" in (table().problem(check({"not_null": "x"})) or "")
    both = [check(RELATED), check({"relationships": {"column": "c", "to": "n.keys", "field": "other"}})]
    assert [each.columns for each in referenced_tables(both)] == [["id", "other"]]


@pytest.mark.parametrize(
    ("audited", "paths"),
    [
        (table(RANGE, added=[file("/a")], live=[file("/b")]), ["/a"]),
        (table(RANGE, added=[file("/a")], is_new=True), None),  # the query names the whole table
        (table(RANGE, added=[file("/a"), file("/b", 1, 2)], is_new=True), ["/a"]),  # the other is proven
        (table({"accepted_range": {"column": "c", "min": 0, "scope": "table"}}, live=[file("/a"), file("/b")]), None),
    ],
)
def test_spark_reads_a_table_by_name_only_if_it_reads_all_of_it(audited: AuditedTable, paths: Any) -> None:
    target = spark_target(group(audited))
    assert [view.paths for view in target.views] == [paths]


def test_spark_reads_a_table_of_main_at_its_hash() -> None:
    keys = referenced(key_file("/k1", 1, 5), key_file("/k2", 6, 9))
    added = [file("/a", 2, 3)]
    (_, view) = spark_target(group(table(RELATED, added=added, referenced=keys))).views
    assert (view.table, view.paths, view.main_hash) == ("n.keys", ["/k1"], "")
    keys = referenced(*keys["n.keys"].files, main_hash="abc")
    (_, view) = spark_target(group(table(RELATED, added=added, referenced=keys))).views
    assert (view.paths, view.main_hash) == (None, "abc")


def test_keys_are_counted_in_disjoint_views_only_without_other_rows() -> None:
    added = [file("/a", 1, 5), file("/b", 6, 9)]
    views = group(table(UNIQUE, added=added)).disjoint_views
    assert [[each.path for each in view.files] for view in views[0]] == [["/a"], ["/b"]]
    assert group(table(UNIQUE, added=added, live=[file("/c", 1, 2)])).disjoint_views == {}


def test_an_answer_becomes_a_verdict_and_no_answer_becomes_none() -> None:
    scanned = group(table(RANGE, NOT_NULL, {"accepted_values": {"column": "c", "values": [1]}}, added=[file("/a")]))
    answers = {
        check_key("n.t", 0): ScanAnswer(metrics={"failed": 2}, sample=[{"c": -1}]),
        check_key("n.t", 2): ScanAnswer(error="no such function"),
    }
    failed, broken = verdicts(scanned, answers, "duckdb")
    assert (failed.verdict, failed.failed_rows, failed.sample, failed.files) == ("fail", 2, [{"c": -1}], 1)
    assert (broken.index, broken.verdict, broken.message) == (2, "error", "no such function")


def test_a_sample_is_taken_of_the_files_with_bad_rows() -> None:
    audited = table(RANGE, added=[file("/a", 1, 2), file("/b", -9, -5)])
    scanned = sample_group(audited, audited.checks[0], DUCKDB)
    assert scanned and [each.path for each in scanned.files] == ["/b"]
    assert sample_group(audited, check({"row_count": 1}), DUCKDB) is None
    assert sample_group(audited, check(UNIQUE), DUCKDB) is None


CAPPED = Table(checks=[check(NOT_NULL), check({"row_count": 1})], on_bad_rows="quarantine", max_bad_rows=5)


@pytest.mark.parametrize(
    ("results", "moved"),
    [
        ([verdict(0)], {"n.t": [0]}),
        ([verdict(0), verdict(1, "pass")], {"n.t": [0]}),
        ([verdict(0), verdict(1)], {}),  # a row count has no bad rows to move
        ([verdict(0, "error")], {}),
        ([verdict(0), verdict(-1)], {}),
        ([verdict(0), verdict(0, name="n.other")], {}),
        ([verdict(0, "warn")], {}),
    ],
)
def test_which_failures_row_quarantine_can_repair(results: list[CheckResult], moved: dict[str, list[int]]) -> None:
    assert quarantinable_checks(results, {"n.t": CAPPED, "n.other": Table(checks=[check(NOT_NULL)])}) == moved


def test_the_job_of_row_quarantine_reads_all_added_files() -> None:
    audited = table(RANGE, UNIQUE, added=[file("/a", 1, 2), file("/b", -9, -5)], live=[file("/c", 1, 1)])
    moved = bad_rows_of_table(audited, [0, 1], CAPPED)
    assert {view.name: view.paths for view in moved.target.views} == {
        "sluice_rows": ["/a", "/b"],
        "sluice_other_rows": ["/c"],
    }
    assert moved.check_titles == {"n.t#0": "accepted_range(c)", "n.t#1": "unique(c)"}
    assert (moved.quarantine, moved.limit) == ("n.t__quarantine", 5)
    assert scan_groups(audited, {0: audited.checks[0]}, SPARK)[1] == {}


def test_the_strictest_cap_limits_the_bad_rows() -> None:
    both = Table(on_bad_rows="quarantine", max_bad_rows=5, max_bad_proportion=0.1)
    assert (bad_row_limit(both, 100), bad_row_limit(both, 29)) == (5, 2)


def test_a_requeue_moves_bad_rows_back_however_many() -> None:
    """The cap protects from a broken source. Requeued rows were quarantined already."""
    audited = table(RANGE, added=[file("/a", 1, 2), file("/b", -9, -5)])
    both = Table(on_bad_rows="quarantine", max_bad_rows=0, max_bad_proportion=0.1)
    loaded, requeued = (bad_rows_of_table(audited, [0], both, requeued=requeued) for requeued in (False, True))
    added_rows = sum(each.rows for each in audited.statistics.added)
    assert (loaded.limit, requeued.limit) == (0, added_rows)
