"""Ask the rows what metadata could not answer, in one Spark job pinned to the audited hash."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from temporalio import activity

from activities.audit_branch import table_states
from activities.failures import told_to_temporal
from activities.spark_folder import job_folder
from engine.diagnose import job_failure
from engine.runner import Spark
from engine.submit import SparkJob
from lakehouse.nessie import Catalogue
from lakehouse.tables import TableState
from sluice.checks.base import Check
from sluice.errors import JobFailed
from sluice.jobs import JobAnswer, ScanAnswer, ScanSpec, ScanTarget
from sluice.orders import SCAN_TRIES, AuditPlan, ScanOrder
from sluice.verdicts import SAMPLE_ROWS, CheckResult, concluded, fitted, unanswered

_SCAN = Path(__file__).resolve().parent.parent / "spark_jobs" / "scan.py"


@dataclass(frozen=True)
class ScanBranchActivity:
    """Needs the catalogue, the properties by which Iceberg reads the lake, and this worker's Spark."""

    catalogue: Catalogue
    io: dict[str, str]
    spark: Spark

    @activity.defn(name="scan_branch")
    async def scan_branch(self, order: ScanOrder) -> AuditPlan:
        """Answer the undecided checks. One that Spark cannot answer is an error, which blocks."""
        with told_to_temporal():
            folder = job_folder(self.spark.settings, order.audit.origin, "scan")
            answer_file = folder / "answer.json"
            answer_file.unlink(missing_ok=True)
            spec = ScanSpec(
                catalogue=self.spark.settings.sluice_catalog,
                targets=list(self._targets(order)),
                sample_rows=SAMPLE_ROWS,
                insist=activity.info().attempt >= SCAN_TRIES,
                answer=str(answer_file),
            )
            (folder / "spec.json").write_text(spec.model_dump_json())
            job = SparkJob(_SCAN, folder, order.audit.branch, at=order.audit.head, args=[str(folder / "spec.json")])
            ended = await self.spark.run(job, activity.heartbeat)
            if not answer_file.exists():
                raise job_failure(ended.code, ended.tail)
            answer = JobAnswer.model_validate_json(answer_file.read_text())
            if answer.error:
                raise JobFailed(answer.error)
            return AuditPlan(decided=fitted(list(_verdicts(order, answer.scans))))

    def _targets(self, order: ScanOrder) -> Iterator[ScanTarget]:
        for name, state in table_states(self.catalogue, order.audit, self.io):
            if state is None or name not in order.undecided:
                continue
            for scope in ("added", "table"):
                scans = {
                    _key(name, index): check.scan(state.types).model_copy(update={"show": check.column_names})
                    for index, check in _undecided(order, name)
                    if check.scope == scope
                }
                if scans:
                    yield _target(name, state, scope == "table").model_copy(update={"scans": scans})


def _target(name: str, state: TableState, whole_table: bool) -> ScanTarget:
    target = ScanTarget(table=name, types=state.types, whole_table=whole_table, scans={})
    if whole_table or state.before is None or state.before.current_snapshot() is None:
        return target
    after, until = state.snapshot_range()
    if state.appended_only():
        target = target.model_copy(update={"after_snapshot": after, "until_snapshot": until})
    return target.model_copy(update={"added_paths": state.added_paths()})


def _verdicts(order: ScanOrder, answers: dict[str, ScanAnswer]) -> Iterator[CheckResult]:
    for name in order.undecided:
        for index, check in _undecided(order, name):
            answer = answers.get(_key(name, index), ScanAnswer(error="the scan gave no answer"))
            if answer.error:
                yield unanswered(name, check, answer.error)
            else:
                yield concluded(name, check, check.judge(answer.numbers), "scan", answer.sample)


def _undecided(order: ScanOrder, table: str) -> Iterator[tuple[int, Check]]:
    checks = order.audit.tables[table].checks
    for index in order.undecided[table]:
        yield index, checks[index]


def _key(table: str, index: int) -> str:
    return f"{table}#{index}"
