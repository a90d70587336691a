"""Run one Spark job on the branch of an attempt."""

from dataclasses import dataclass
from pathlib import Path

from temporalio import activity

from activities.errors import as_application_error
from activities.job_folder import job_folder
from engine.job import SparkJob
from engine.runner import Spark
from engine.spark.jars import require_s3
from engine.spark.job_errors import job_failure
from lakehouse.catalog import BranchCatalog
from lakehouse.source_files import base_path, find_files, identify_input
from sluice import errors
from sluice.contracts.activity_inputs import JobReport, WriteTableInput
from sluice.contracts.run import InputFile
from sluice.contracts.spark_jobs import IngestSpec, JobAnswer
from sluice.errors import InvalidInput, InvalidPipeline
from sluice.pipeline.source import Source

_INGEST = Path(__file__).resolve().parent.parent / "spark_jobs" / "ingest.py"


@dataclass(frozen=True)
class WriteTableActivity:
    """Needs the catalog and this worker's Spark."""

    catalog: BranchCatalog
    spark: Spark

    @activity.defn(name="write_table")
    async def write_table(self, input: WriteTableInput) -> JobReport:
        """Run the job to its end. What it did is not taken from here but read back from the branch."""
        with as_application_error():
            sources = input.write.source.paths if input.write.source else []
            require_s3(self.spark.settings, self.spark.settings.lake, *sources)
            folder = job_folder(self.spark.settings, input.run_ref, "write")
            answer_file = folder / "answer.json"
            job = self._job(input, folder, answer_file)
            ended = await self.spark.run(job, activity.heartbeat)
            answer = JobAnswer.model_validate_json(answer_file.read_text()) if answer_file.exists() else None
            if answer and answer.error:
                raise getattr(errors, answer.error_kind)(answer.error)
            if ended.code != 0:
                raise job_failure(ended.code, ended.tail, self.catalog.explain_refused_write(ended.tail))
            return JobReport(
                rows_read=answer.rows_read if answer else None,
                rows_written=answer.rows_written if answer else None,
                log=str(ended.log),
            )

    def _job(self, input: WriteTableInput, folder: Path, answer_file: Path) -> SparkJob:
        program, args, working_directory, input_bytes = _INGEST, [str(folder / "spec.json")], None, None
        answer_file.unlink(missing_ok=True)
        if input.write.built_in:
            files = _identified_files(input.write.source, input.input_digest) if input.write.source else []
            input_bytes = sum(file.size for file in files) if input.write.traits.reads_source_alone else None
            spec = self._spec(input, files, answer_file)
            (folder / "spec.json").write_text(spec.model_dump_json(by_alias=True))
        else:
            program, args = Path(input.write.job), input.write.args
            working_directory = Path(input.folder) if Path(input.folder).is_dir() else None
            if not program.is_file():
                raise InvalidPipeline(f"the job {program} is not there on the worker's machine")
        return SparkJob(
            program=program,
            folder=folder,
            branch=input.branch,
            catalog=self.catalog.spark_properties(self.spark.settings.sluice_catalog, input.branch),
            run_id=input.run_ref.run_id,
            attempt=input.run_ref.attempt,
            args=args,
            conf=input.write.conf,
            built_in=input.write.built_in,
            working_directory=working_directory,
            pipeline=input.run_ref.pipeline,
            input_bytes=input_bytes,
            needs_jvm=input.write.traits.needs_jvm,
        )

    def _spec(self, input: WriteTableInput, files: list[InputFile], answer_file: Path) -> IngestSpec:
        source = input.write.source
        return IngestSpec(
            spark_catalog=self.spark.settings.sluice_catalog,
            write=input.write,
            files=[file.path for file in files],
            bytes=sum(file.size for file in files),
            is_sorted=bool(input.sorted_tables),
            base_path=base_path(source) if source else None,
            tables=input.tables,
            answer=str(answer_file),
        )


def _identified_files(source: Source, digest: str) -> list[InputFile]:
    """List the files again and make sure that they are those that the run was started for."""
    files = find_files(source)
    if identify_input(files).digest != digest:
        raise InvalidInput(f"the files at {', '.join(source.paths)} changed since the run was started: start it again")
    return files
