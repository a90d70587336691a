"""Spark's scan engine: one Spark job, pinned to the audited hash, answers the checks that other engines refuse."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from engine.job import SparkJob
from engine.process.heartbeat import run_in_thread
from engine.runner import Spark
from engine.scan import ScanContext
from engine.spark.built_in_job import JobCatalog, run_built_in_job
from sluice.audit.answers import check_key
from sluice.audit.scan_groups import ScanGroup
from sluice.audit.spark_target import spark_target
from sluice.audit.tables import AuditedTable
from sluice.checks.base import Check
from sluice.checks.verdicts import AnsweredBy, sample_size
from sluice.contracts.spark_jobs import ScanAnswer, ScanSpec
from sluice.errors import JobFailed
from sluice.sealed_answer import new_answer_key
from sluice.sql.dialect import SPARK, Dialect

_PROGRAM = Path(__file__).resolve().parent.parent / "spark_jobs" / "scan.py"
_NO_ANSWER = ScanAnswer(error="the scan gave no answer")


@dataclass(frozen=True)
class SparkScan:
    """The implementation of `ScanEngine` with this worker's Spark and the catalog."""

    spark: Spark
    catalog: JobCatalog
    name: AnsweredBy = "spark"
    dialect: Dialect = SPARK

    def refusals(self, table: AuditedTable, checks: Mapping[int, Check]) -> dict[int, str]:
        """Return nothing: Spark answers every check."""
        return {}

    async def scan(self, groups: Sequence[ScanGroup], context: ScanContext) -> dict[str, ScanAnswer]:
        """Answer every check in one Spark job. The answer is an error if Spark cannot answer the check.

        Raises:
            JobFailed: the job failed as a whole, or a retryable error occurred before the last attempt.
        """
        prepare = partial(self._prepare, groups, context)
        spec, job = await run_in_thread(prepare, context.heartbeat, "preparing the scan")
        _, answer = await run_built_in_job(self.spark, self.catalog, job, spec, context.heartbeat)
        if answer.error:
            raise JobFailed(answer.error)
        keys = [check_key(group.table.name, index) for group in groups for index in group.checks]
        return {key: answer.scans.get(key, _NO_ANSWER) for key in keys}

    def _prepare(self, groups: Sequence[ScanGroup], context: ScanContext) -> tuple[ScanSpec, SparkJob]:
        spec = ScanSpec(
            spark_catalog=self.spark.settings.catalog_name,
            main=self.catalog.main,
            targets=[spark_target(group) for group in groups],
            sample_rows=sample_size(sum(len(group.queries) for group in groups)),
            last_attempt=context.last_attempt,
            answer=str(context.folder / "answer.json"),
            answer_key=new_answer_key(),
            show_values=context.audit.show_values,
        )
        audit, run_ref = context.audit, context.audit.run_ref
        job = SparkJob(
            program=_PROGRAM,
            folder=context.folder,
            branch=audit.branch,
            catalog=self.catalog.spark_properties(
                self.spark.settings.catalog_name, audit.branch, audit.head, context.folder
            ),
            run_id=run_ref.run_id,
            attempt=run_ref.attempt,
            try_number=context.try_number,
            pipeline=run_ref.pipeline,
            runs_apart=context.runs_apart,
            input_bytes=_bytes_read(groups, spec),
        )
        return spec, job


def _bytes_read(groups: Sequence[ScanGroup], spec: ScanSpec) -> int | None:
    """Return the number of bytes that the job reads, or None if it reads more than the rows in scope."""
    if any(len(target.views) > 1 for target in spec.targets):
        return None
    return sum(file.bytes for group in groups for file in group.files)
