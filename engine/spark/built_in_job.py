"""Run a built-in Spark job: hand it its spec as a file, and read the answer that it leaves in another."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from engine.job import JobResult, SparkJob
from engine.private_files import write_private
from engine.process.heartbeat import Heartbeat, run_in_thread
from engine.runner import Spark
from engine.spark.job_errors import job_failure, store_absence
from sluice.contracts.spark_jobs import JobAnswer, QuarantineRowsSpec, ScanSpec
from sluice.errors import ServiceUnavailable
from sluice.sealed_answer import open_answer


class JobCatalog(Protocol):
    """What a job needs from the catalog; `lakehouse.catalog.BranchCatalog` has more."""

    @property
    def main(self) -> str:
        """The name of main."""

    def spark_properties(
        self, spark_catalog: str, branch: str, at: str | None = None, folder: Path | None = None
    ) -> dict[str, str]:
        """Return the Spark configuration of a catalog that is bound to a branch, or pinned to a hash of it."""

    def explain_absence(self, lines: Iterable[str]) -> str | None:
        """Return how the catalog was away while a job ran, if lines of the job's output tell so, or None."""

    def explain_refused_write(self, lines: Iterable[str]) -> str | None:
        """Return what the server refused a job, if lines of the job's output tell so, or None."""


def read_answer(file: Path, key: str) -> JobAnswer | None:
    """Return the answer that a job left in a file, sealed with its key, or None if it left none.

    Raises:
        JobFailed: that job did not write it.
    """
    return open_answer(file.read_text(encoding="utf-8", errors="replace"), key) if file.exists() else None


async def run_built_in_job(
    spark: Spark, catalog: JobCatalog, job: SparkJob, spec: ScanSpec | QuarantineRowsSpec, heartbeat: Heartbeat
) -> tuple[JobResult, JobAnswer]:
    """Run a job with a spec, and return how it ended and what it answered, which may be an error.

    Raises:
        SluiceError: the job ended without an answer.
    """
    prepared = await run_in_thread(partial(_write_spec, job, spec), heartbeat, "starting Spark")
    result = await spark.run(prepared, heartbeat)
    read = partial(read_answer, Path(spec.answer), spec.answer_key)
    answer = await run_in_thread(read, heartbeat, "reading the answer")
    if (answer is None or answer.error) and (absence := describe_absence(catalog, answer, result)):
        raise ServiceUnavailable(absence)
    if answer is None:
        refused = catalog.explain_refused_write(result.tail)
        raise job_failure(result, refused, show_values=spec.show_values)
    return result, answer


def describe_absence(catalog: JobCatalog, answer: JobAnswer | None, result: JobResult) -> str | None:
    """Return why a job that failed did so for want of the catalog or the object store, or None.

    An answer that blames the input is believed: what a file holds may read like any error.
    """
    if answer and answer.error and answer.error_kind not in ("", "JobFailed"):
        return None
    lines = [answer.error, *answer.causes] if answer and answer.error else result.tail
    return catalog.explain_absence(lines) or store_absence(lines)


def _write_spec(job: SparkJob, spec: ScanSpec | QuarantineRowsSpec) -> SparkJob:
    Path(spec.answer).unlink(missing_ok=True)  # an earlier attempt's
    spec_file = write_private(job.folder / "spec.json", spec.model_dump_json())
    return replace(job, args=[str(spec_file)])
