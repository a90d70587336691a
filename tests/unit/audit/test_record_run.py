"""The record of a run: every verdict that counts, including verdicts that no engine gave."""

from pathlib import Path

from activities.run.record_run import RecordRunActivity
from lakehouse.audit.report_store import ReportStore
from lakehouse.audit.results_table import AuditResultsTable
from sluice.approval.waivers import WaivedCheck
from sluice.checks.verdicts import CheckResult, Verdict
from sluice.contracts.references import RunRef
from sluice.contracts.run import RecordRunInput, RunResult
from tests.harness.activity import run_activity
from tests.harness.memory_catalog import MemoryCatalog

RUN = RunRef(run_id="r1", workflow_id="w1", pipeline="p", label="p", attempt=1)


def verdict(index: int, given: Verdict, rows: int = 0, check: str = "not_null") -> CheckResult:
    sample = [{"id": number} for number in range(rows)]
    return CheckResult(table="t.x", index=index, check=check, columns=["id"], verdict=given, sample=sample)


def test_a_check_that_no_engine_answered_is_in_the_table_and_the_report(tmp_path: Path) -> None:
    reports = ReportStore(tmp_path.as_uri(), {})
    catalog = MemoryCatalog()
    table = AuditResultsTable(catalog, tmp_path.as_uri(), {})
    reports.write_verdicts(RUN, "h", "metadata", [verdict(0, "pass"), verdict(1, "fail", rows=5)])
    recorded = [
        verdict(0, "pass"),
        verdict(1, "fail", rows=1),
        verdict(2, "error"),
        verdict(-1, "error", check="audit"),
    ]
    result = RunResult(run_id="r1", workflow_id="w1", pipeline="p", checks=recorded)
    input = RecordRunInput(run_ref=RUN, result=result, head="h", ended_at="2026-01-31T00:00:00+00:00")
    run_activity(RecordRunActivity(catalog, reports, table).record_run, input)
    report, stored = reports.read_report(RUN), table.read()
    assert report and stored
    assert [(check.index, check.verdict) for check in report.checks] == [
        *((-1, "error"), (0, "pass"), (1, "fail"), (2, "error")),
    ]
    assert len(report.checks[2].sample) == 5, "the whole sample is in the store"
    assert sorted(stored.scan().to_arrow()["verdict"].to_pylist()) == ["error", "error", "fail", "pass"]


def test_a_verdict_that_the_run_decided_otherwise_counts(tmp_path: Path) -> None:
    reports = ReportStore(tmp_path.as_uri(), {})
    reports.write_verdicts(RUN, "h", "spark", [verdict(0, "pass")])
    result = RunResult(run_id="r1", workflow_id="w1", pipeline="p", checks=[verdict(0, "error")])
    input = RecordRunInput(run_ref=RUN, result=result, head="h", ended_at="2026-01-31T00:00:00+00:00")
    catalog = MemoryCatalog()
    table = AuditResultsTable(catalog, tmp_path.as_uri(), {})
    run_activity(RecordRunActivity(catalog, reports, table).record_run, input)
    report = reports.read_report(RUN)
    assert report and [check.verdict for check in report.checks] == ["error"]


def test_a_waived_verdict_is_recorded_with_its_waiver(tmp_path: Path) -> None:
    reports, catalog = ReportStore(tmp_path.as_uri(), {}), MemoryCatalog()
    table = AuditResultsTable(catalog, tmp_path.as_uri(), {})
    waived = WaivedCheck(
        table="t.x",
        index=1,
        check="not_null(id)",
        fingerprint="f",
        by=["ana", "ben"],
        reason="late feed",
        until="2026-12-01T23:59:59+00:00",
        run_id="r0",
    )
    named = verdict(0, "pass").model_copy(update={"check": "sql", "name": "no orphans"})
    checks = [named, verdict(1, "fail"), verdict(2, "fail")]
    result = RunResult(run_id="r1", workflow_id="w1", pipeline="p", checks=checks, waived=[waived])
    input = RecordRunInput(run_ref=RUN, result=result, head="h", ended_at="2026-01-31T00:00:00+00:00")
    run_activity(RecordRunActivity(catalog, reports, table).record_run, input)
    stored = table.read_rows()
    assert stored and sorted(map(str, stored["waived_by"].to_pylist())) == ["None", "None", "ana, ben"]
    labels = {(each["check_name"], each["check_label"]) for each in stored.to_pylist()}
    assert labels == {("sql", "no orphans"), ("not_null", None)}
    (row,) = (each for each in stored.to_pylist() if each["waived_by"])
    assert (row["verdict"], row["waiver_reason"], row["waiver_run_id"]) == ("fail", "late feed", "r0")
    assert row["waived_until"].isoformat() == "2026-12-01T23:59:59+00:00"
