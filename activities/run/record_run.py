"""Record an ended run: its whole report in the report store, its verdicts in the audit results table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from temporalio import activity

from lakehouse.audit.report_store import ReportStore
from lakehouse.audit.results_table import AuditResultsTable
from lakehouse.catalog import BranchCatalog
from sluice.approval.waivers import WaivedCheck, parse_until
from sluice.checks.verdicts import CheckResult, with_whole_samples
from sluice.contracts.references import RunRef
from sluice.contracts.run import RecordRunInput, RunResult
from sluice.presentation.waivers import waiver_of


@dataclass(frozen=True)
class RecordRunActivity:
    """The activity `record_run`. Needs the catalog, the report store and the audit results table."""

    catalog: BranchCatalog
    reports: ReportStore
    results_table: AuditResultsTable

    @activity.defn(name="record_run")
    def record_run(self, input: RecordRunInput) -> str:
        """Write the report and append the verdicts; return the path of the report."""
        result = input.result
        checks = with_whole_samples(result.checks, self.reports.read_verdicts(input.run_ref, input.head))
        checks = sorted(checks, key=lambda check: (check.table, check.index))
        whole = result.model_copy(update={"checks": checks})
        path = self.reports.write_report(input.run_ref, whole.model_dump(mode="json"))
        rows = list(_rows(input.run_ref, whole, input.ended_at, path))
        self.results_table.record(input.run_ref.run_id, rows, again=activity.info().attempt > 1)
        return path


def _rows(run_ref: RunRef, result: RunResult, ended_at: str, report: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each verdict, or one row for a run without verdicts."""
    run = {
        "run_id": result.run_id,
        "workflow_id": result.workflow_id,
        "pipeline": result.pipeline,
        "outcome": result.outcome,
        "reason": result.reason,
        "audited_hash": result.audited_hash,
        "report": report,
        "attempt": run_ref.attempt,
        "ended_at": datetime.fromisoformat(ended_at),
    }
    checks: Sequence[CheckResult | None] = result.checks or [None]
    for check in checks:
        waiver = waiver_of(check, result.waived) if check else None
        yield {**run, **(_of_check(check) if check else {}), **(_of_waiver(waiver) if waiver else {})}


def _of_waiver(waiver: WaivedCheck) -> dict[str, Any]:
    return {
        "waived_by": ", ".join(waiver.by),
        "waived_until": parse_until(waiver.until),
        "waiver_reason": waiver.reason,
        "waiver_run_id": waiver.run_id,
    }


def _of_check(check: CheckResult) -> dict[str, Any]:
    return {
        "table_name": check.table,
        "check_name": check.check,
        "check_label": check.name or None,
        "columns": check.columns,
        "scope": check.scope,
        "verdict": check.verdict,
        "observed": None if check.observed is None else str(check.observed),
        "expected": check.expected,
        "answered_by": check.answered_by,
        "failed_rows": check.failed_rows,
        "files": check.files,
        "bytes": check.bytes,
        "message": check.message,
    }
