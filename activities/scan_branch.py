"""Ask the rows by one Spark job, pinned to the audited hash, what neither metadata nor DuckDB could answer."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from temporalio import activity

from activities.audit_tables import AuditedTable, load_audited_tables
from activities.errors import as_application_error
from activities.job_folder import create_job_folder
from engine.job import SparkJob
from engine.runner import Spark
from engine.spark.job_errors import job_failure
from lakehouse.catalog import BranchCatalog
from lakehouse.report_store import ReportStore
from sluice.audit.planner import ScanGroup, scan_groups
from sluice.audit.verdicts import SAMPLE_ROWS, AnswerSource, CheckResult, check_result, error_result, trim_samples
from sluice.checks.base import REST, ROWS
from sluice.contracts.activity_inputs import SCAN_ATTEMPTS, AuditPlan, ScanInput
from sluice.contracts.spark_jobs import JobAnswer, ScanAnswer, ScanSpec, ScanTarget, View
from sluice.errors import JobFailed
from sluice.sql.dialect import SPARK

_SCAN = Path(__file__).resolve().parent.parent / "spark_jobs" / "scan.py"


@dataclass(frozen=True)
class ScanBranchActivity:
    """Needs the catalog, the properties by which Iceberg reads the lake, and this worker's Spark."""

    catalog: BranchCatalog
    io: dict[str, str]
    spark: Spark
    reports: ReportStore

    @activity.defn(name="scan_branch")
    async def scan_branch(self, input: ScanInput) -> AuditPlan:
        """Answer the undecided checks. One that Spark cannot answer is an error, which blocks."""
        with as_application_error():
            folder = create_job_folder(self.spark.settings, input.audit.run_ref, "scan")
            answer_file = folder / "answer.json"
            answer_file.unlink(missing_ok=True)
            found = list(self._readings(input))
            spec = ScanSpec(
                spark_catalog=self.spark.settings.sluice_catalog,
                main=self.catalog.main,
                targets=[target(table, reading) for table, reading in found],
                sample_rows=SAMPLE_ROWS,
                insist=activity.info().attempt >= SCAN_ATTEMPTS,
                answer=str(answer_file),
            )
            (folder / "spec.json").write_text(spec.model_dump_json())
            job = SparkJob(
                program=_SCAN,
                folder=folder,
                branch=input.audit.branch,
                catalog=self.catalog.spark_properties(
                    self.spark.settings.sluice_catalog, input.audit.branch, input.audit.head
                ),
                run_id=input.audit.run_ref.run_id,
                attempt=input.audit.run_ref.attempt,
                pipeline=input.audit.run_ref.pipeline,
                try_number=activity.info().attempt,
                args=[str(folder / "spec.json")],
                input_bytes=_size(found, spec),
            )
            ended = await self.spark.run(job, activity.heartbeat)
            if not answer_file.exists():
                raise job_failure(ended.code, ended.tail, self.catalog.explain_refused_write(ended.tail))
            answer = JobAnswer.model_validate_json(answer_file.read_text())
            if answer.error:
                raise JobFailed(answer.error)
            decided = [each for table, reading in found for each in verdicts(table, reading, answer.scans)]
            self.reports.keep_part(input.audit.run_ref, input.audit.head, "spark", decided)
            return AuditPlan(decided=trim_samples(decided))

    def _readings(self, input: ScanInput) -> Iterator[tuple[AuditedTable, ScanGroup]]:
        for name, table in load_audited_tables(self.catalog, input.audit, self.io):
            if table is not None and name in input.undecided:
                checks = {index: table.checks[index] for index in input.undecided[name]}
                for reading in scan_groups(checks, table.facts, SPARK)[0]:
                    yield table, reading


def target(table: AuditedTable, reading: ScanGroup) -> ScanTarget:
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


def _size(found: list[tuple[AuditedTable, ScanGroup]], spec: ScanSpec) -> int | None:
    """Return how much is read, where it is the checked rows alone."""
    if any(len(each.views) > 1 for each in spec.targets):
        return None
    return sum(file.bytes for _, reading in found for file in reading.files)


def verdicts(table: AuditedTable, reading: ScanGroup, answers: dict[str, ScanAnswer]) -> Iterator[CheckResult]:
    for index, check in reading.checks.items():
        answer = answers.get(_key(table.name, index), ScanAnswer(error="the scan gave no answer"))
        if answer.error:
            yield error_result(table.name, index, check, answer.error)
        else:
            reply = AnswerSource("spark", answer.sample, len(reading.files), reading.bytes_of(index))
            yield check_result(table.name, index, check, reading.finding(index, answer), reply)


def _key(table: str, index: int) -> str:
    return f"{table}#{index}"
