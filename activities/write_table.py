"""Run one Spark job on the branch of an attempt."""

from dataclasses import dataclass
from pathlib import Path

from temporalio import activity

from activities.errors import told_to_temporal
from activities.job_folder import job_folder
from engine.job import SparkJob
from engine.runner import Spark
from engine.spark.jars import require_s3
from engine.spark.job_errors import job_failure
from lakehouse.source_files import base_path, find_files, identity
from sluice import errors
from sluice.contracts.activity_inputs import JobReport, WriteOrder
from sluice.contracts.run import InputFile
from sluice.contracts.spark_jobs import IngestSpec, JobAnswer
from sluice.errors import InvalidInput, InvalidPipeline
from sluice.pipeline.source import Source

_INGEST = Path(__file__).resolve().parent.parent / "spark_jobs" / "ingest.py"
_READS_SOURCE_ALONE = ("append", "overwrite", "overwrite_partitions")


@dataclass(frozen=True)
class WriteTableActivity:
    """Needs this worker's Spark."""

    spark: Spark

    @activity.defn(name="write_table")
    async def write_table(self, order: WriteOrder) -> JobReport:
        """Run the job to its end. What it did is not taken from here but read back from the branch."""
        with told_to_temporal():
            sources = order.write.source.paths if order.write.source else []
            require_s3(self.spark.settings, self.spark.settings.lake, *sources)
            folder = job_folder(self.spark.settings, order.origin, "write")
            answer_file = folder / "answer.json"
            job = self._job(order, folder, answer_file)
            ended = await self.spark.run(job, activity.heartbeat)
            answer = JobAnswer.model_validate_json(answer_file.read_text()) if answer_file.exists() else None
            if answer and answer.error:
                raise getattr(errors, answer.error_kind)(answer.error)
            if ended.code != 0:
                raise job_failure(ended.code, ended.tail)
            return JobReport(
                rows_read=answer.rows_read if answer else None,
                rows_written=answer.rows_written if answer else None,
                log=str(ended.log),
            )

    def _job(self, order: WriteOrder, folder: Path, answer_file: Path) -> SparkJob:
        program, args, where, size = _INGEST, [str(folder / "spec.json")], None, None
        answer_file.unlink(missing_ok=True)
        if order.write.built_in:
            files = _identified_files(order.write.source, order.input_digest) if order.write.source else []
            size = sum(file.size for file in files) if order.write.mode in _READS_SOURCE_ALONE else None
            spec = self._spec(order, files, answer_file)
            (folder / "spec.json").write_text(spec.model_dump_json(by_alias=True))
        else:
            program, args = Path(order.write.job), order.write.args
            where = Path(order.folder) if Path(order.folder).is_dir() else None
            if not program.is_file():
                raise InvalidPipeline(f"the job {program} is not there on the worker's machine")
        return SparkJob(
            program=program,
            folder=folder,
            branch=order.branch,
            run_id=order.origin.run_id,
            attempt=order.origin.attempt,
            args=args,
            conf=order.write.conf,
            ours=order.write.built_in,
            where=where,
            pipeline=order.origin.pipeline,
            bytes=size,
            classic=order.write.mode == "compact",
        )

    def _spec(self, order: WriteOrder, files: list[InputFile], answer_file: Path) -> IngestSpec:
        source = order.write.source
        return IngestSpec(
            catalogue=self.spark.settings.sluice_catalog,
            write=order.write,
            files=[file.path for file in files],
            bytes=sum(file.size for file in files),
            in_order=bool(order.in_order),
            base_path=base_path(source) if source else None,
            tables=order.tables,
            answer=str(answer_file),
        )


def _identified_files(source: Source, digest: str) -> list[InputFile]:
    """List the files again and make sure that they are those that the run was started for."""
    files = find_files(source)
    if identity(files).digest != digest:
        raise InvalidInput(f"the files at {', '.join(source.paths)} changed since the run was started: start it again")
    return files
