"""Run a built-in Spark job, which reads its spec from one file and writes its answer to another."""

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
    """The part of `lakehouse.catalog.BranchCatalog` that a job needs."""

    @property
    def main(self) -> str:
        """The name of main."""

    def spark_properties(
        self, spark_catalog: str, branch: str, at: str | None = None, folder: Path | None = None
    ) -> dict[str, str]:
        """Return the Spark configuration of a catalog that is bound to a branch, or pinned to a hash of it."""

    def explain_absence(self, lines: Iterable[str]) -> str | None:
        """Return a description of the catalog's outage if the output of a job reports one, else None."""

    def explain_refused_write(self, lines: Iterable[str]) -> str | None:
        """Return a description of the write that the server refused if the output of a job reports one, else None."""


def read_answer(file: Path, key: str) -> JobAnswer | None:
    """Return the answer that a job wrote to a file and sealed with its key, or None if there is no file.

    Raises:
        JobFailed: another program wrote the file.
    """
    return open_answer(file.read_text(encoding="utf-8", errors="replace"), key) if file.exists() else None


async def run_built_in_job(
    spark: Spark, catalog: JobCatalog, job: SparkJob, spec: ScanSpec | QuarantineRowsSpec, heartbeat: Heartbeat
) -> tuple[JobResult, JobAnswer]:
    """Run a job with a spec; return its result, and its answer, which may be an error.

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
    """Return why the catalog or the object store was unavailable for a failed job, or None if neither was the cause.

    An answer that blames the input is always believed, since the content of a file may look like any error.
    """
    if answer and answer.error and answer.error_kind not in ("", "JobFailed"):
        return None
    lines = [answer.error, *answer.causes] if answer and answer.error else result.tail
    return catalog.explain_absence(lines) or store_absence(lines)


def _write_spec(job: SparkJob, spec: ScanSpec | QuarantineRowsSpec) -> SparkJob:
    Path(spec.answer).unlink(missing_ok=True)  # the answer of an earlier attempt
    spec_file = write_private(job.folder / "spec.json", spec.model_dump_json())
    return replace(job, args=[str(spec_file)])
