"""Set bad rows apart: take them out of the table into its quarantine table, on the branch of the attempt."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from temporalio import activity

from activities.audit_tables import AuditedTable, audited_tables
from activities.errors import told_to_temporal
from activities.job_folder import job_folder
from activities.scan_branch import target
from engine.job import SparkJob
from engine.runner import Spark
from engine.spark.job_errors import job_failure
from lakehouse.nessie.catalog import Catalogue
from sluice import errors
from sluice.audit.bad_rows import limit_of, quarantine_of
from sluice.audit.planner import readings
from sluice.audit.verdicts import label
from sluice.contracts.activity_inputs import DivideOrder, Division
from sluice.contracts.spark_jobs import DivideSpec, JobAnswer
from sluice.sql.dialect import SPARK

_DIVIDE = Path(__file__).resolve().parent.parent / "spark_jobs" / "quarantine_rows.py"


@dataclass(frozen=True)
class DivideRowsActivity:
    """Needs the catalogue, the properties by which Iceberg reads the lake, and this worker's Spark."""

    catalogue: Catalogue
    io: dict[str, str]
    spark: Spark

    @activity.defn(name="divide_rows")
    async def divide_rows(self, order: DivideOrder) -> Division:
        """Move the rows that break these checks, unless one table has more of them than its cap."""
        with told_to_temporal():
            origin = order.audit.origin
            folder = job_folder(self.spark.settings, origin, "divide")
            answer_file = folder / "answer.json"
            answer_file.unlink(missing_ok=True)
            spec = DivideSpec(
                catalogue=self.spark.settings.sluice_catalog,
                main=self.catalogue.main,
                run_id=origin.run_id,
                at=order.audit.now,
                tables=list(self._divided(order)),
                answer=str(answer_file),
            )
            (folder / "spec.json").write_text(spec.model_dump_json())
            job = SparkJob(
                program=_DIVIDE,
                folder=folder,
                branch=order.audit.branch,
                run_id=origin.run_id,
                attempt=origin.attempt,
                pipeline=origin.pipeline,
                args=[str(folder / "spec.json")],
            )
            ended = await self.spark.run(job, activity.heartbeat)
            answer = JobAnswer.model_validate_json(answer_file.read_text()) if answer_file.exists() else None
            if answer and answer.error:
                raise getattr(errors, answer.error_kind)(answer.error)
            if answer is None or ended.code != 0:
                raise job_failure(ended.code, ended.tail)
            return Division(bad_rows=answer.bad_rows, above_cap=answer.above_cap)

    def _divided(self, order: DivideOrder) -> Iterator[DivideSpec.Part]:
        for name, table in audited_tables(self.catalogue, order.audit, self.io):
            if table is not None and name in order.failing:
                yield self._part(order, table)

    def _part(self, order: DivideOrder, table: AuditedTable) -> DivideSpec.Part:
        checks = {index: table.checks[index] for index in order.failing[table.name]}
        (reading,) = readings(checks, table.facts, SPARK)[0]
        rows = sum(file.rows for file in table.facts.added)
        # Every added row may be bad by some check, so all added files are read, not only undecided ones.
        whole = target(table, reading.over(table.facts.added))
        return DivideSpec.Part(
            table=table.name,
            quarantine=quarantine_of(table.name),
            target=whole,
            labels={key: label(checks[int(key.rsplit("#", 1)[1])]) for key in whole.questions},
            limit=limit_of(order.audit.tables[table.name], rows),
        )
