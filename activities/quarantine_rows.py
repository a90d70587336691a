"""Set bad rows apart: take them out of the table into its quarantine table, on the branch of the attempt."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from temporalio import activity

from activities.audit_tables import AuditedTable, load_audited_tables
from activities.errors import as_application_error
from activities.job_folder import create_job_folder
from activities.scan_branch import target
from engine.job import SparkJob
from engine.runner import Spark
from engine.spark.job_errors import job_failure
from lakehouse.catalog import BranchCatalog
from sluice import errors
from sluice.audit.bad_rows import bad_row_limit, quarantine_table
from sluice.audit.planner import scan_groups
from sluice.audit.verdicts import label
from sluice.contracts.activity_inputs import QuarantineRowsInput, QuarantineRowsResult
from sluice.contracts.spark_jobs import JobAnswer, QuarantineRowsSpec
from sluice.sql.dialect import SPARK

_DIVIDE = Path(__file__).resolve().parent.parent / "spark_jobs" / "quarantine_rows.py"


@dataclass(frozen=True)
class QuarantineRowsActivity:
    """Needs the catalog, the properties by which Iceberg reads the lake, and this worker's Spark."""

    catalog: BranchCatalog
    io: dict[str, str]
    spark: Spark

    @activity.defn(name="quarantine_rows")
    async def quarantine_rows(self, input: QuarantineRowsInput) -> QuarantineRowsResult:
        """Move the rows that break these checks, unless one table has more of them than its cap."""
        with as_application_error():
            run_ref = input.audit.run_ref
            folder = create_job_folder(self.spark.settings, run_ref, "divide")
            answer_file = folder / "answer.json"
            answer_file.unlink(missing_ok=True)
            spec = QuarantineRowsSpec(
                spark_catalog=self.spark.settings.sluice_catalog,
                main=self.catalog.main,
                run_id=run_ref.run_id,
                at=input.audit.now,
                tables=list(self._divided(input)),
                answer=str(answer_file),
            )
            (folder / "spec.json").write_text(spec.model_dump_json())
            job = SparkJob(
                program=_DIVIDE,
                folder=folder,
                branch=input.audit.branch,
                catalog=self.catalog.spark_properties(self.spark.settings.sluice_catalog, input.audit.branch),
                run_id=run_ref.run_id,
                attempt=run_ref.attempt,
                pipeline=run_ref.pipeline,
                args=[str(folder / "spec.json")],
            )
            ended = await self.spark.run(job, activity.heartbeat)
            answer = JobAnswer.model_validate_json(answer_file.read_text()) if answer_file.exists() else None
            if answer and answer.error:
                raise getattr(errors, answer.error_kind)(answer.error)
            if answer is None or ended.code != 0:
                raise job_failure(ended.code, ended.tail, self.catalog.explain_refused_write(ended.tail))
            return QuarantineRowsResult(bad_rows=answer.bad_rows, above_cap=answer.above_cap)

    def _divided(self, input: QuarantineRowsInput) -> Iterator[QuarantineRowsSpec.Part]:
        for name, table in load_audited_tables(self.catalog, input.audit, self.io):
            if table is not None and name in input.failing:
                yield self._part(input, table)

    def _part(self, input: QuarantineRowsInput, table: AuditedTable) -> QuarantineRowsSpec.Part:
        checks = {index: table.checks[index] for index in input.failing[table.name]}
        (reading,) = scan_groups(checks, table.facts, SPARK)[0]
        rows = sum(file.rows for file in table.facts.added)
        # Every added row may be bad by some check, so all added files are read, not only undecided ones.
        whole = target(table, reading.over(table.facts.added))
        return QuarantineRowsSpec.Part(
            table=table.name,
            quarantine=quarantine_table(table.name),
            target=whole,
            labels={key: label(checks[int(key.rsplit("#", 1)[1])]) for key in whole.questions},
            limit=bad_row_limit(input.audit.tables[table.name], rows),
        )
