"""The results of queries about quarantines: evidence is cut to a size that Temporal can carry."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.quarantine import describe_quarantine
from activities.quarantine.describe_quarantine import DescribeQuarantineActivity
from activities.quarantine.list_quarantine import ListQuarantineActivity
from lakehouse.audit.report_store import ReportStore
from lakehouse.quarantine.quarantined_branches import QuarantinedTable, create_quarantine
from sluice.checks.verdicts import CheckResult, verdicts_digest
from sluice.contracts.quarantine_queries import DescribeQuarantineInput, DescribeQuarantineResult, ListQuarantineInput
from sluice.publishing.commit_properties import BASE, PIPELINE, REASON, RUN_ID, VERDICTS
from tests.harness.activity import run_activity
from tests.harness.memory_catalog import MemoryCatalog

SAMPLE = [{"text": "x" * 100} for _ in range(5)]
CHECKS = [
    CheckResult(table="t.x", check="not_null", columns=["a"], verdict="fail", expected="no nulls", sample=SAMPLE)
] * 100


def run(activity: Callable[..., Any], query: object) -> Any:
    return run_activity(activity, query)


def catalog_with_quarantines(count: int, reason: str, verdicts: str = "") -> MemoryCatalog:
    catalog = MemoryCatalog()
    main = catalog.initialize_main()
    catalog.create_branch("wap/x/a1", main)
    for number in range(count):
        properties = {RUN_ID: f"run-{number}", PIPELINE: "cities", BASE: main, REASON: reason, VERDICTS: verdicts}
        create_quarantine(catalog, f"quarantine/cities/2026-01-01/run-{number}", main, "wap/x/a1", properties)
    return catalog


class Reports(ReportStore):
    """A store with one report, which has large samples."""

    def read_report(self, run_ref: object) -> Any:
        return type("Report", (), {"checks": CHECKS})()


def describe(
    monkeypatch: pytest.MonkeyPatch, folder: Path, rows: list[dict[str, Any]], recorded: list[CheckResult] = CHECKS
) -> DescribeQuarantineResult:
    table = QuarantinedTable("t.x", None, [], 0, rows)
    monkeypatch.setattr(describe_quarantine, "read_quarantined_tables", lambda *_, **__: iter([table]))
    catalog = catalog_with_quarantines(1, "r" * 500, verdicts_digest(recorded))
    activity = DescribeQuarantineActivity(catalog, {}, Reports(folder.as_uri(), {}))
    described: DescribeQuarantineResult = run(activity.describe_quarantine, DescribeQuarantineInput(run="run-0"))
    return described


def test_a_described_quarantine_has_every_verdict_and_short_evidence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    described = describe(monkeypatch, tmp_path, [{"id": 1, "text": "y" * 5000}])
    assert len(described.checks) == 100
    assert sum(len(check.model_dump_json().encode()) for check in described.checks) <= 500_000
    (row,) = described.tables["t.x"].rows
    assert row["id"] == 1 and len(row["text"]) < 200
    assert described.summary.reason == "r" * 500


def test_a_report_that_a_job_changed_in_the_lake_is_not_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The quarantine's commit, which only the publisher can write, has the digest of the verdicts."""
    passed = [CHECKS[0].model_copy(update={"verdict": "pass"}), *CHECKS[1:]]
    assert describe(monkeypatch, tmp_path, [], recorded=passed).checks == []
    other_samples = [each.model_copy(update={"sample": []}) for each in CHECKS]
    assert len(describe(monkeypatch, tmp_path, [], recorded=other_samples).checks) == 100


def test_a_description_is_measured_in_bytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = [{"text": "語" * 100} for _ in range(4000)]  # 0.4 million characters, 1.2 million bytes
    with pytest.raises(ApplicationError, match=r"larger than 1 MiB.*--rows"):
        describe(monkeypatch, tmp_path, rows)


def test_many_quarantines_with_long_reasons_are_listed() -> None:
    activity = ListQuarantineActivity(catalog_with_quarantines(300, "r" * 5000), {})
    entries = run(activity.list_quarantine, ListQuarantineInput()).quarantined
    assert {(len(entry.summary.reason), entry.summary.reason[-1]) for entry in entries} == {(201, "…")}


def test_a_list_that_is_too_large_names_the_remedy_of_a_list() -> None:
    activity = ListQuarantineActivity(catalog_with_quarantines(2500, "r" * 200), {})
    with pytest.raises(ApplicationError, match="discard quarantines that are not needed any more"):
        run(activity.list_quarantine, ListQuarantineInput())
