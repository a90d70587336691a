"""Run a built-in Spark job: hand it its spec as a file, and read the answer that it leaves in another."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from engine.job import JobResult, SparkJob
from engine.process.heartbeat import Heartbeat
from engine.runner import Spark
from engine.spark.job_errors import job_failure
from sluice.contracts.spark_jobs import JobAnswer, QuarantineRowsSpec, ScanSpec


class JobCatalog(Protocol):
    """What a job needs from the catalog; `lakehouse.catalog.BranchCatalog` has more."""

    @property
    def main(self) -> str:
        """The name of main."""

    def spark_properties(self, spark_catalog: str, branch: str, at: str | None = None) -> dict[str, str]:
        """Return the Spark configuration of a catalog that is bound to a branch, or pinned to a hash of it."""

    def explain_refused_write(self, lines: Iterable[str]) -> str | None:
        """Return what the server refused a job, if lines of the job's output tell so, or None."""


async def run_built_in_job(
    spark: Spark, catalog: JobCatalog, job: SparkJob, spec: ScanSpec | QuarantineRowsSpec, heartbeat: Heartbeat
) -> tuple[JobResult, JobAnswer]:
    """Run a job with a spec, and return how it ended and what it answered, which may be an error.

    Raises:
        SluiceError: the job ended without an answer.
    """
    answer_file, spec_file = Path(spec.answer), job.folder / "spec.json"
    answer_file.unlink(missing_ok=True)  # an earlier attempt's
    spec_file.write_text(spec.model_dump_json())
    result = await spark.run(replace(job, args=[str(spec_file)]), heartbeat)
    if not answer_file.exists():
        raise job_failure(result.code, result.tail, catalog.explain_refused_write(result.tail))
    return result, JobAnswer.model_validate_json(answer_file.read_text())
