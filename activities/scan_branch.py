"""Ask the rows by one Spark job, pinned to the audited hash, what neither metadata nor DuckDB could answer."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from temporalio import activity

from activities.audit_tables import AuditedTable, audited_tables
from activities.errors import told_to_temporal
from activities.job_folder import job_folder
from engine.job import SparkJob
from engine.runner import Spark
from engine.spark.job_errors import job_failure
from lakehouse.nessie.catalog import Catalogue
from lakehouse.report_store import Reports
from sluice.audit.planner import Reading, readings
from sluice.audit.verdicts import SAMPLE_ROWS, CheckResult, Reply, concluded, fitted, unanswered
from sluice.checks.base import REST, ROWS
from sluice.contracts.activity_inputs import SCAN_TRIES, AuditPlan, ScanOrder
from sluice.contracts.spark_jobs import JobAnswer, ScanAnswer, ScanSpec, ScanTarget, View
from sluice.errors import JobFailed
from sluice.sql.dialect import SPARK

_SCAN = Path(__file__).resolve().parent.parent / "spark_jobs" / "scan.py"


@dataclass(frozen=True)
class ScanBranchActivity:
    """Needs the catalogue, the properties by which Iceberg reads the lake, and this worker's Spark."""

    catalogue: Catalogue
    io: dict[str, str]
    spark: Spark
    reports: Reports

    @activity.defn(name="scan_branch")
    async def scan_branch(self, order: ScanOrder) -> AuditPlan:
        """Answer the undecided checks. One that Spark cannot answer is an error, which blocks."""
        with told_to_temporal():
            folder = job_folder(self.spark.settings, order.audit.origin, "scan")
            answer_file = folder / "answer.json"
            answer_file.unlink(missing_ok=True)
            found = list(self._readings(order))
            spec = ScanSpec(
                catalogue=self.spark.settings.sluice_catalog,
                main=self.catalogue.main,
                targets=[target(table, reading) for table, reading in found],
                sample_rows=SAMPLE_ROWS,
                insist=activity.info().attempt >= SCAN_TRIES,
                answer=str(answer_file),
            )
            (folder / "spec.json").write_text(spec.model_dump_json())
            job = SparkJob(
                program=_SCAN,
                folder=folder,
                branch=order.audit.branch,
                at=order.audit.head,
                run_id=order.audit.origin.run_id,
                attempt=order.audit.origin.attempt,
                pipeline=order.audit.origin.pipeline,
                tries=activity.info().attempt,
                args=[str(folder / "spec.json")],
                bytes=_size(found, spec),
            )
            ended = await self.spark.run(job, activity.heartbeat)
            if not answer_file.exists():
                raise job_failure(ended.code, ended.tail)
            answer = JobAnswer.model_validate_json(answer_file.read_text())
            if answer.error:
                raise JobFailed(answer.error)
            decided = [each for table, reading in found for each in verdicts(table, reading, answer.scans)]
            self.reports.keep_part(order.audit.origin, order.audit.head, "spark", decided)
            return AuditPlan(decided=fitted(decided))

    def _readings(self, order: ScanOrder) -> Iterator[tuple[AuditedTable, Reading]]:
        for name, table in audited_tables(self.catalogue, order.audit, self.io):
            if table is not None and name in order.undecided:
                checks = {index: table.checks[index] for index in order.undecided[name]}
                for reading in readings(checks, table.facts, SPARK)[0]:
                    yield table, reading


def target(table: AuditedTable, reading: Reading) -> ScanTarget:
    """Say to Spark which rows a reading is about, and what to ask of them."""
    questions = reading.questions
    whole = reading.scope == "table" or table.state.before is None
    everything = whole and len(reading.files) == len([file for file in table.facts.files(reading.scope) if file.rows])
    paths = None if everything else [file.path for file in reading.files]
    views = [View(name=ROWS, table=table.name, paths=paths)]
    rest = table.rest_of(questions.values(), reading.files)
    if rest:
        views.append(View(name=REST, table=table.name, paths=[file.path for file in rest]))
    for key in sorted({question.other.key for question in questions.values() if question.other}):
        other = table.others[key]
        files = [file.path for file in table.files_of(other, list(questions.values()), reading.files)]
        pruned = not other.at and len(files) < len(other.files)
        paths = files if pruned else None
        views.append(View(name=other.other.view, table=other.other.table, at_main=other.at, paths=paths))
    return ScanTarget(
        table=table.name,
        types=dict(table.facts.types),
        views=views,
        with_rest=bool(rest),
        questions={_key(table.name, index): question for index, question in questions.items()},
    )


def _size(found: list[tuple[AuditedTable, Reading]], spec: ScanSpec) -> int | None:
    """Return how much is read, where it is the checked rows alone."""
    if any(len(each.views) > 1 for each in spec.targets):
        return None
    return sum(file.bytes for _, reading in found for file in reading.files)


def verdicts(table: AuditedTable, reading: Reading, answers: dict[str, ScanAnswer]) -> Iterator[CheckResult]:
    for index, check in reading.checks.items():
        answer = answers.get(_key(table.name, index), ScanAnswer(error="the scan gave no answer"))
        if answer.error:
            yield unanswered(table.name, index, check, answer.error)
        else:
            reply = Reply("spark", answer.sample, len(reading.files), reading.bytes_of(index))
            yield concluded(table.name, index, check, reading.finding(index, answer), reply)


def _key(table: str, index: int) -> str:
    return f"{table}#{index}"
