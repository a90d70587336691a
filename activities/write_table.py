"""Run the write of an attempt: one Spark job, the built-in one or the user's, on the branch of the attempt."""

from dataclasses import dataclass, replace
from pathlib import Path

from temporalio import activity

from activities.errors import as_application_error
from activities.job_folder import create_job_folder
from engine.job import SparkJob
from engine.runner import Spark
from engine.spark.jars import require_s3
from engine.spark.job_errors import job_failure
from lakehouse.catalog import BranchCatalog
from lakehouse.source_files import base_path, find_files, identify_input
from sluice import errors
from sluice.contracts.run import InputFile
from sluice.contracts.spark_jobs import IngestSpec, JobAnswer
from sluice.contracts.write import JobReport, WriteTableInput
from sluice.errors import InvalidInput, InvalidPipeline
from sluice.pipeline.source import Source

_INGEST = Path(__file__).resolve().parent.parent / "spark_jobs" / "ingest.py"


@dataclass(frozen=True)
class WriteTableActivity:
    """The activity `write_table`. Needs the catalog and this worker's Spark."""

    catalog: BranchCatalog
    spark: Spark

    @activity.defn(name="write_table")
    async def write_table(self, input: WriteTableInput) -> JobReport:
        """Run the job to its end. What it wrote is not reported here but read from the branch by `verify_write`."""
        with as_application_error():
            sources = input.write.source.paths if input.write.source else []
            require_s3(self.spark.settings, self.spark.settings.lake, *sources)
            folder = create_job_folder(self.spark.settings, input.run_ref, "write")
            answer_file = folder / "answer.json"
            answer_file.unlink(missing_ok=True)
            job = SparkJob(
                program=Path(input.write.job),
                folder=folder,
                branch=input.branch,
                catalog=self.catalog.spark_properties(self.spark.settings.sluice_catalog, input.branch),
                run_id=input.run_ref.run_id,
                attempt=input.run_ref.attempt,
                args=input.write.args,
                conf=input.write.conf,
                pipeline=input.run_ref.pipeline,
            )
            job = self._built_in_job(job, input, answer_file) if input.write.built_in else _user_job(job, input)
            result = await self.spark.run(job, activity.heartbeat)
            answer = JobAnswer.model_validate_json(answer_file.read_text()) if answer_file.exists() else JobAnswer()
            if answer.error:
                raise getattr(errors, answer.error_kind)(answer.error)
            if result.code != 0:
                raise job_failure(result.code, result.tail, self.catalog.explain_refused_write(result.tail))
            return JobReport(rows_read=answer.rows_read, rows_written=answer.rows_written, log=str(result.log))

    def _built_in_job(self, job: SparkJob, input: WriteTableInput, answer_file: Path) -> SparkJob:
        """Write the specification of the built-in job; return the job."""
        source, traits = input.write.source, input.write.traits
        files = _list_unchanged_files(source, input.input_digest) if source else []
        size = sum(file.size for file in files)
        spec = IngestSpec(
            spark_catalog=self.spark.settings.sluice_catalog,
            write=input.write,
            files=[file.path for file in files],
            bytes=size,
            is_sorted=bool(input.sorted_tables),
            base_path=base_path(source) if source else None,
            tables=input.tables,
            answer=str(answer_file),
        )
        spec_file = job.folder / "spec.json"
        spec_file.write_text(spec.model_dump_json(by_alias=True))
        return replace(
            job,
            program=_INGEST,
            args=[str(spec_file)],
            input_bytes=size if traits.reads_source_alone else None,
            needs_jvm=traits.needs_jvm,
        )


def _user_job(job: SparkJob, input: WriteTableInput) -> SparkJob:
    """Return the job for a program of the user's, in the folder that the run was started in, if it is there.

    Raises:
        InvalidPipeline: the program is not on this machine.
    """
    if not job.program.is_file():
        raise InvalidPipeline(f"the job {job.program} is not there on the worker's machine")
    folder = Path(input.folder)
    return replace(job, built_in=False, working_directory=folder if folder.is_dir() else None)


def _list_unchanged_files(source: Source, digest: str) -> list[InputFile]:
    """List the files again.

    Raises:
        InvalidInput: they are not those that the run was started for.
    """
    files = find_files(source)
    if identify_input(files).digest != digest:
        raise InvalidInput(f"the files at {', '.join(source.paths)} changed since the run was started: start it again")
    return files
