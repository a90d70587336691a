"""Move the rows that break checks from a table into its quarantine table, on the attempt's branch."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from temporalio import activity

from activities.run.job_folder import create_job_folder
from engine.job import SparkJob
from engine.process.heartbeat import run_in_thread
from engine.runner import Spark
from engine.spark.built_in_job import run_built_in_job
from engine.spark.job_errors import job_failure
from lakehouse.audit.audited_tables import AuditedTables
from lakehouse.catalog import BranchCatalog
from sluice.contracts.audit import QuarantineRowsInput, QuarantineRowsResult
from sluice.contracts.spark_jobs import QuarantineRowsSpec
from sluice.errors import error_class
from sluice.publishing.bad_rows import bad_rows_of_table
from sluice.sealed_answer import new_answer_key

_PROGRAM = Path(__file__).resolve().parents[2] / "spark_jobs" / "quarantine_rows.py"


@dataclass(frozen=True)
class QuarantineRowsActivity:
    """The activity `quarantine_rows`. Needs the loader of audited tables, and this worker's Spark."""

    tables: AuditedTables
    spark: Spark

    @property
    def catalog(self) -> BranchCatalog:
        """Catalog of the audited tables."""
        return self.tables.catalog

    @activity.defn(name="quarantine_rows")
    async def quarantine_rows(self, input: QuarantineRowsInput) -> QuarantineRowsResult:
        """Move the rows that break these checks, unless a table has more such rows than its cap."""
        run_ref, catalog = input.audit.run_ref, self.catalog
        spark_catalog = self.spark.settings.catalog_name
        make_folder = partial(create_job_folder, self.spark.settings.storage, run_ref, "quarantine-rows")
        folder = await run_in_thread(make_folder, activity.heartbeat, "preparing the job")
        bad_rows = partial(self._bad_rows, input)
        audited = partial(catalog.audited_catalog, spark_catalog, input.audit.branch, input.audit.head, folder)
        audited_catalog, pinned = await run_in_thread(audited, activity.heartbeat, "reading the branch")
        spec = QuarantineRowsSpec(
            spark_catalog=spark_catalog,
            audited_catalog=audited_catalog,
            main=catalog.main,
            run_id=run_ref.run_id,
            at=input.audit.now,
            tables=await run_in_thread(bad_rows, activity.heartbeat, "reading table metadata"),
            answer=str(folder / "answer.json"),
            answer_key=new_answer_key(),
            show_values=input.audit.show_values,
        )
        job = SparkJob(
            program=_PROGRAM,
            folder=folder,
            branch=input.audit.branch,
            catalog={**catalog.spark_properties(spark_catalog, input.audit.branch, None, folder), **pinned},
            run_id=run_ref.run_id,
            attempt=run_ref.attempt,
            pipeline=run_ref.pipeline,
            partition=run_ref.partition,
            runs_apart=input.runs_apart,
        )
        result, answer = await run_built_in_job(self.spark, catalog, job, spec, activity.heartbeat)
        record = partial(catalog.record_job, input.audit.branch, spark_catalog, folder)
        await run_in_thread(record, activity.heartbeat, "recording what the job wrote")
        if answer.error:
            raise error_class(answer.error_kind)(answer.error)
        if result.code != 0:
            refused = catalog.explain_refused_write(result.tail)
            raise job_failure(result, refused, show_values=input.audit.show_values)
        return QuarantineRowsResult(
            bad_rows=answer.bad_rows, broken_checks=answer.broken_checks, above_cap=answer.above_cap
        )

    def _bad_rows(self, input: QuarantineRowsInput) -> list[QuarantineRowsSpec.BadRows]:
        return [
            bad_rows_of_table(
                table,
                input.failing[name],
                input.audit.tables[name],
                input.audit.keys,
                requeued=input.audit.requeued,
                moved_before=input.moved_before.get(name, 0),
            )
            for name, table in self.tables.load(input.audit)
            if table is not None and name in input.failing
        ]
