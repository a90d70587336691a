"""Run the write of an attempt on its branch: one Spark job, either the built-in job or the user's program."""

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from temporalio import activity

from activities.run.job_folder import create_job_folder
from activities.run.source_progress import run_with_progress
from engine.job import SparkJob
from engine.private_files import write_private
from engine.process.heartbeat import run_in_thread
from engine.runner import Spark
from engine.spark.built_in_job import describe_absence, read_answer
from engine.spark.jars import require_s3
from engine.spark.job_errors import job_failure
from lakehouse.catalog import BranchCatalog
from lakehouse.input.manifests import InputManifests
from lakehouse.source_files import (
    Inspection,
    OnProgress,
    base_path,
    check_unchanged,
    find_files,
    find_line,
    find_non_object,
    find_repeated_key,
    identify_input,
    inspect_files,
    stated_encoding,
    with_deciding_values,
)
from lakehouse.source_files.csv_content import CsvFormat
from lakehouse.source_files.listing import changed_since_start
from sluice.contracts.run_request import InputFile
from sluice.contracts.spark_jobs import IngestSpec, JobAnswer, UnreadableRows
from sluice.contracts.write import JobReport, WriteTableInput
from sluice.errors import InvalidInput, InvalidPipeline, ServiceUnavailable, error_class
from sluice.input.unreadable import describe_unreadable
from sluice.pipeline.source import Source
from sluice.sealed_answer import new_answer_key

_INGEST = Path(__file__).resolve().parents[2] / "spark_jobs" / "ingest.py"


@dataclass(frozen=True)
class WriteTableActivity:
    """The activity `write_table`. Needs the catalog, this worker's Spark, and the input manifests."""

    catalog: BranchCatalog
    spark: Spark
    manifests: InputManifests

    @activity.defn(name="write_table")
    async def write_table(self, input: WriteTableInput) -> JobReport:
        """Run the job to its end. The result does not include the written rows: `verify_write` reads the branch."""
        sources = input.write.source.paths if input.write.source else []
        require_s3(self.spark.settings.storage, self.spark.settings.storage.lake, *sources)
        loaded = await _read_before(input, self.manifests)
        key = new_answer_key() if input.write.built_in else ""
        prepare = partial(self._prepare, input, loaded, key)
        job, answer_file = await run_in_thread(prepare, activity.heartbeat, "starting the job")
        result = await self.spark.run(job, activity.heartbeat)
        record = partial(self.catalog.record_job, input.branch, self.spark.settings.catalog_name, job.folder)
        await run_in_thread(record, activity.heartbeat, "recording what the job wrote")
        # A user's program has no key, so a file that it leaves there is not read.
        read = partial(read_answer, answer_file, key)
        answer = await run_in_thread(read, activity.heartbeat, "reading the answer") if key else None
        failed = result.code != 0 or (answer is not None and answer.error)
        if failed and (absence := describe_absence(self.catalog, answer, result)):
            raise ServiceUnavailable(absence)
        if answer and answer.error:
            await _check_after(input, loaded)  # a file that changed meanwhile explains the error
            if answer.unreadable:
                explain = partial(_explain_unreadable, input, answer.unreadable)
                raise InvalidInput(await run_in_thread(explain, activity.heartbeat, "looking for the line"))
            if _is_about_json(answer) and input.write.source:
                locate = partial(_locate_in_json, input.write.source, loaded, repeats_name=answer.repeats_name)
                located = await run_in_thread(locate, activity.heartbeat, "looking for the line")
                raise InvalidInput(located or answer.error)
            raise error_class(answer.error_kind)(answer.error)
        if result.code != 0:
            refused = self.catalog.explain_refused_write(result.tail)
            raise job_failure(result, refused, program=job.program, show_values=input.show_values)
        await _check_after(input, loaded)
        reported = answer.model_dump(include={"rows_read", "rows_written", "rows_merged", "types"}) if answer else {}
        report = JobReport(**reported, log=str(result.log))
        name = partial(_with_deciding_values, report, input, loaded)
        return await run_in_thread(name, activity.heartbeat, "looking for values that decided types")

    def _prepare(self, input: WriteTableInput, loaded: "_Loaded", key: str) -> tuple[SparkJob, Path]:
        """Return the job, and the file for its answer."""
        settings, run_ref = self.spark.settings, input.run_ref
        folder = create_job_folder(settings.storage, run_ref, "write")
        answer_file = folder / "answer.json"
        answer_file.unlink(missing_ok=True)
        job = SparkJob(
            program=Path(input.write.job),
            folder=folder,
            branch=input.branch,
            catalog=self.catalog.spark_properties(settings.catalog_name, input.branch, None, folder),
            run_id=run_ref.run_id,
            attempt=run_ref.attempt,
            args=input.write.args,
            conf=input.write.conf,
            environment=input.write.environment,
            pipeline=run_ref.pipeline,
            partition=run_ref.partition,
            runs_apart=input.runs_apart,
            lineage_root=input.lineage_parent,
        )
        job = self._built_in_job(job, input, loaded, answer_file, key) if key else _user_job(job, input)
        return job, answer_file

    def _built_in_job(
        self, job: SparkJob, input: WriteTableInput, loaded: "_Loaded", answer_file: Path, key: str
    ) -> SparkJob:
        """Write the specification of the built-in job; return the job."""
        source, traits = input.write.source, input.write.traits
        size = sum(file.size for file in loaded.files)
        spec = IngestSpec(
            spark_catalog=self.spark.settings.catalog_name,
            write=input.write,
            files=[file.path for file in loaded.files],
            bytes=size,
            rows=loaded.inspection.rows,
            read_whole=loaded.inspection.read_whole,
            one_value=loaded.inspection.one_value,
            empty_objects=loaded.inspection.empty_objects,
            column_groups=loaded.inspection.column_groups,
            nanoseconds=loaded.inspection.nanoseconds,
            foreign_times=loaded.inspection.foreign_times,
            missing_fields=loaded.inspection.missing_fields if input.write.needs_all_fields else [],
            is_sorted=bool(input.sorted_tables),
            base_path=base_path(source) if source else None,
            tables=input.tables,
            answer=str(answer_file),
            answer_key=key,
            show_values=input.show_values,
        )
        spec_file = job.folder / "spec.json"
        write_private(spec_file, spec.model_dump_json(by_alias=True))
        return replace(
            job,
            program=_INGEST,
            args=[str(spec_file)],
            input_bytes=size if traits.reads_source_alone else None,
            needs_jvm=traits.needs_jvm,
        )


def _user_job(job: SparkJob, input: WriteTableInput) -> SparkJob:
    """Return the job for a user's program. It runs in the folder where the run was started, if that folder exists.

    Raises:
        InvalidPipeline: the program is not on this machine.
    """
    if not job.program.is_file():
        raise InvalidPipeline(
            f"the worker's machine has no file {job.program}: copy the job there, or correct `write.job`"
        )
    folder = Path(input.folder)
    return replace(
        job,
        built_in=False,
        shares_server=input.write.engine == "connect",
        working_directory=folder if folder.is_dir() else None,
    )


@dataclass(frozen=True)
class _Loaded:
    """The files that an attempt loads, and the results of their inspection before Spark reads them."""

    files: list[InputFile] = field(default_factory=list)
    inspection: Inspection = field(default_factory=Inspection)


async def _read_before(input: WriteTableInput, manifests: InputManifests) -> _Loaded:
    """Identify and inspect the selected files again, right before Spark reads them; return them.

    Raises:
        InvalidInput: a file changed, or Spark would not read the whole file.
    """
    if input.write.source is None:
        return _Loaded()
    work = partial(_selected_files, input, manifests)
    return await run_with_progress(work, activity.heartbeat, "reading the files to load")


def _with_deciding_values(report: JobReport, input: WriteTableInput, loaded: _Loaded) -> JobReport:
    if input.write.source is None:
        return report
    files, source = loaded.files, input.write.source
    types = with_deciding_values(report.types, source, files, show_values=input.show_values)
    return report.model_copy(update={"types": types})


def _explain_unreadable(input: WriteTableInput, rows: UnreadableRows) -> str:
    """Return a message with the row of the source that Spark could not read, and the reason."""
    source = input.write.source
    options = {name.lower(): value for name, value in source.options.items()} if source else {}
    is_json = source is not None and source.reader_format() == "json"
    if is_json and not rows.column and (odd := find_non_object([rows.path], stated_encoding(options))):
        return odd
    has_header = not is_json and CsvFormat.of(options).has_header
    line = find_line(rows.path, stated_encoding(options), rows.record, has_header=has_header)
    return describe_unreadable(rows, line, show_values=input.show_values)


def _is_about_json(answer: JobAnswer) -> bool:
    """Return True if the error of a job may be explained by the text of JSON files: it is an error of Spark's own."""
    return answer.repeats_name or (answer.error_kind == InvalidInput.__name__ and answer.error.startswith("["))


def _locate_in_json(source: Source, loaded: _Loaded, *, repeats_name: bool) -> str | None:
    """Return a message with file and line of what Spark does not read in JSON; None if it is not found.

    Args:
        repeats_name: True if an object has a key twice; False if an element of an array may be no object.
    """
    if source.reader_format() != "json":
        return None
    options = {name.lower(): value for name, value in source.options.items()}
    find = find_repeated_key if repeats_name else find_non_object
    return find((file.path for file in loaded.files), stated_encoding(options))


async def _check_after(input: WriteTableInput, loaded: _Loaded) -> None:
    """Identify the files again after Spark has read them.

    Raises:
        InvalidInput: a file changed, so Spark may have read other content than was identified.
    """
    if input.write.source:
        doing = "checking that the files are unchanged"
        await run_with_progress(partial(_check_unchanged, input, loaded), activity.heartbeat, doing)


def _selected_files(input: WriteTableInput, manifests: InputManifests, on_progress: OnProgress) -> _Loaded:
    """Return the files that the attempt loads, checked against their selection.

    Raises:
        InvalidInput: a file changed since it was selected, or Spark would not read the whole file.
        ManifestUnreadable: the manifest with the selected files cannot be read.
    """
    if input.manifest is None or input.write.source is None:
        raise InvalidInput("the run has a source, and no files were selected from it")
    selected = manifests.read(input.manifest).loaded
    files = [InputFile(path=file.path, size=file.size, identity=file.identity) for file in selected]
    if input.write.built_in:
        is_transformed = input.write.transform is not None
        return _Loaded(files, inspect_files(files, input.write.source, on_progress, is_transformed=is_transformed))
    loaded = _Loaded(files)
    _check_unchanged(input, loaded, on_progress)
    return loaded


def _check_unchanged(input: WriteTableInput, loaded: _Loaded, on_progress: OnProgress) -> None:
    """Check that the files have not changed since they were selected.

    Raises:
        InvalidInput: a file changed, or the source lists other files, which a program that lists them would read, too.
    """
    source = input.write.source
    assert source
    check_unchanged(loaded.files, source, on_progress, loaded.inspection.states)
    if (
        not input.write.built_in
        and identify_input(find_files(source, on_progress), input.scope).digest != input.input_digest
    ):
        raise changed_since_start(source.paths)
