"""Write down what became of a run: its whole report beside the lake, its verdicts in the ledger."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from temporalio import activity

from activities.errors import told_to_temporal
from lakehouse.audit_results_table import Ledger
from lakehouse.report_store import Reports
from sluice.audit.verdicts import CheckResult
from sluice.contracts.activity_inputs import Origin
from sluice.contracts.run import RecordOrder, RunResult


@dataclass(frozen=True)
class RecordRunActivity:
    """Needs the reports and the ledger."""

    reports: Reports
    ledger: Ledger

    @activity.defn(name="record_run")
    def record_run(self, order: RecordOrder) -> str:
        """Keep the report and record the verdicts; return where the report is."""
        with told_to_temporal():
            result = order.result
            checks = self.reports.verdicts(order.origin, result.audited_hash or "") or result.checks
            checks = sorted(checks, key=lambda check: (check.table, check.index))
            whole = result.model_copy(update={"checks": checks})
            place = self.reports.keep(order.origin, whole.model_dump(mode="json"))
            rows = list(_rows(order.origin, whole, order.ended_at, place))
            self.ledger.record(order.origin.run_id, rows, again=activity.info().attempt > 1)
            return place


def _rows(origin: Origin, result: RunResult, ended_at: str, report: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each verdict; a run without any gets one row all the same."""
    run = {
        "run_id": result.run_id,
        "workflow_id": result.workflow_id,
        "pipeline": result.pipeline,
        "outcome": result.outcome,
        "reason": result.reason,
        "audited_hash": result.audited_hash,
        "report": report,
        "attempt": origin.attempt,
        "ended_at": datetime.fromisoformat(ended_at),
    }
    checks: Sequence[CheckResult | None] = result.checks or [None]
    for check in checks:
        yield {**run, **(_of_check(check) if check else {})}


def _of_check(check: CheckResult) -> dict[str, Any]:
    return {
        "table_name": check.table,
        "check_name": check.check,
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
