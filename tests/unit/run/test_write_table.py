"""The activity that runs the write of an attempt, with an engine that does as the test says."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from temporalio.exceptions import ApplicationError

from activities.run.source_progress import run_with_progress
from activities.run.write_table import WriteTableActivity
from engine.job import JobResult, SparkJob
from engine.process.heartbeat import Heartbeat
from engine.runner import Spark
from lakehouse.input.manifests import InputManifests
from lakehouse.source_files import OnProgress, find_files, identify_input
from sluice.contracts.progress import Progress
from sluice.contracts.references import RunRef
from sluice.contracts.spark_jobs import IngestSpec, JobAnswer, UnreadableRows
from sluice.contracts.write import JobReport, WriteTableInput
from sluice.input.manifest import InputManifest, ManifestHeader
from sluice.input.selection import select_files
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write
from sluice.sealed_answer import seal_answer
from sluice.settings import Settings
from tests.harness.activity import run_activity
from tests.harness.memory_catalog import MemoryCatalog

Step = Callable[[Path], None]


class Engine:
    """An engine that reads nothing. It runs a step of the test instead, for changes by others while Spark reads."""

    has_jvm = True

    def __init__(self, during: Step, file: Path, error: str = "", **answer: object) -> None:
        self._during, self._file, self._error, self._answer = during, file, error, answer
        self.spec: IngestSpec | None = None

    async def run(self, job: SparkJob, heartbeat: Heartbeat) -> JobResult:
        if job.built_in:
            self.spec = IngestSpec.model_validate_json(Path(job.args[0]).read_text())
        self._during(self._file)
        if self.spec and self._error:
            answer = JobAnswer.model_validate({"error": self._error, "error_kind": "InvalidInput", **self._answer})
            Path(self.spec.answer).write_text(seal_answer(answer, self.spec.answer_key))
        return JobResult(0, [], job.folder / "log")

    async def warm_up(self) -> None:
        pass

    async def close(self) -> None:
        pass


def nothing(_: Path) -> None:
    pass


def replace_by_same_size(file: Path) -> None:
    """Replace the content by another one of the same size and time."""
    times = file.stat()
    file.write_text("id\n9\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def append(file: Path) -> None:
    with file.open("a") as appended:
        appended.write("2\n")


def remove(file: Path) -> None:
    file.unlink()


def replace_and_put_back(file: Path) -> None:
    content = file.read_bytes()
    file.write_text("id\n9\n")
    file.write_bytes(content)


def another(file: Path) -> None:
    (file.parent / "c.csv").write_text("id\n3\n")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id\n0\n")
    (tmp_path / "in" / "b.csv").write_text("id\n1\n")
    return tmp_path / "in" / "b.csv"


def write(
    file: Path,
    before: Step = nothing,
    during: Step = nothing,
    job: str = "ingest",
    error: str = "",
    repeats_name: bool = False,
    unreadable: UnreadableRows | None = None,
    schema: str | None = None,
    **more: object,
) -> tuple[JobReport, Engine]:
    home = file.parent.parent
    source = {"path": str(file.parent), "format": file.suffix[1:], "schema": schema}
    stated = Write.model_validate({"job": job, "source": source, **more})
    assert stated.source
    files = find_files(stated.source)
    digest = identify_input(files).digest
    run = RunRef(run_id="r", workflow_id="w", pipeline="p", label="p", attempt=1)
    header = ManifestHeader(
        run_id="r", workflow_id="w", pipeline="p", attempt=1, base="", tables=["t.x"], policy="skip", again=False,
        input_digest=digest,
    )  # fmt: skip
    manifests = InputManifests((home / "lake").as_uri(), {})
    manifest = manifests.write(
        InputManifest(header=header, files=select_files(files, {}, "skip", reads_selection=True))
    )
    before(file)
    engine = Engine(during, file, error, repeats_name=repeats_name, unreadable=unreadable)
    spark = Spark(Settings.of(sluice_home=home).spark_jobs, engine)
    input = WriteTableInput(
        run_ref=run,
        branch="wap/p/r/a1",
        write=stated,
        tables={"t.x": Table()},
        input_digest=digest,
        manifest=manifest,
    )
    activity = WriteTableActivity(MemoryCatalog(), spark, manifests).write_table
    report: JobReport = asyncio.run(run_activity(activity, input))
    return report, engine


def test_the_job_is_told_which_files_it_reads_and_what_they_hold(file: Path) -> None:
    (file.parent / "copy.csv").write_text("id\n1\n")
    _, engine = write(file)
    assert engine.spec
    assert ([Path(each).name for each in engine.spec.files], engine.spec.rows) == (["a.csv", "b.csv"], 2)


@pytest.mark.parametrize(
    ("more", "missing"),
    [
        ({"mode": "merge", "keys": ["id"]}, [["n"]]),
        ({"mode": "merge", "keys": ["id"], "transform": "SELECT * FROM source"}, []),
        ({"mode": "merge", "keys": ["id"], "schema": "id BIGINT, n BIGINT"}, []),
        ({"mode": "append"}, []),
    ],
)
def test_only_a_merge_gets_the_fields_that_a_file_lacks(
    more: dict[str, Any], missing: list[list[str]], tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    parquet.write_table(pa.table({"id": [1], "n": [1]}), folder / "a.parquet")
    parquet.write_table(pa.table({"id": [2]}), folder / "b.parquet")
    _, engine = write(folder / "b.parquet", **more)
    assert engine.spec and [each.fields for each in engine.spec.missing_fields] == missing


@pytest.mark.parametrize("change", [replace_by_same_size, append, remove])
def test_a_file_that_changed_while_the_run_waited(file: Path, change: Step) -> None:
    started: list[Path] = []
    with pytest.raises(ApplicationError, match=r"b\.csv .* start the run again") as refused:
        write(file, before=change, during=started.append)
    assert not started
    assert refused.value.type == "InputChanged" and refused.value.non_retryable


@pytest.mark.parametrize("change", [replace_by_same_size, append, remove, replace_and_put_back])
def test_a_file_that_changed_while_spark_read(file: Path, change: Step) -> None:
    with pytest.raises(ApplicationError, match=r"b\.csv .* start the run again") as refused:
        write(file, during=change)
    assert refused.value.type == "InputChanged" and refused.value.non_retryable
    assert "\n" not in str(refused.value)


def test_a_file_that_changed_is_the_reason_for_what_spark_could_not_read(file: Path) -> None:
    """Spark reads another number of rows than was counted, and would blame the options of the source."""
    counted = "Spark read 3 rows of 2 files that contain 2"
    with pytest.raises(ApplicationError, match=r"b\.csv .* start the run again"):
        write(file, during=append, error=counted)
    with pytest.raises(ApplicationError, match=counted):
        write(file, error=counted)


@pytest.mark.parametrize(("before", "during"), [(another, nothing), (nothing, another)])
def test_a_file_that_arrives_is_for_the_next_run(file: Path, before: Step, during: Step) -> None:
    _, engine = write(file, before, during)
    assert engine.spec and engine.spec.rows == 2


def test_a_program_may_have_read_a_file_that_arrived(file: Path) -> None:
    program = file.parent.parent / "job.py"
    program.touch()
    write(file, job=str(program))
    with pytest.raises(ApplicationError, match="changed since the run was started"):
        write(file, during=another, job=str(program))


def test_a_key_that_occurs_twice_is_named_by_file_and_line(tmp_path: Path) -> None:
    """Spark names the column alone."""
    file = tmp_path / "in" / "a.json"
    file.parent.mkdir()
    file.write_text('{"id": 1}\n{"id": 2, "v": 1, "v": 2}\n')
    error = "the input has the column `v` twice"
    with pytest.raises(ApplicationError, match=r'a\.json, line 2: an object has the key "v" twice: rename'):
        write(file, error=error, repeats_name=True)
    file.write_text('{"id": 1}\n{"id": 2, "v": 1}\n')  # the transform returned it twice
    with pytest.raises(ApplicationError, match=error):
        write(file, error=error, repeats_name=True)


@pytest.mark.parametrize(
    "error",
    [
        "[INVALID_JSON_RECORD_TYPE] Detected an invalid type of a JSON record while inferring a common schema",
        UnreadableRows(path="PATH", record="[...]", there_may_be_more=True),
    ],
)
def test_an_element_that_is_no_object_is_named_by_file_and_line(tmp_path: Path, error: str | UnreadableRows) -> None:
    """Spark names the file alone, by an error of its own."""
    file = tmp_path / "in" / "a.json"
    file.parent.mkdir()
    file.write_text('[{"id": 1},\n null,\n {"id": 2}]')
    unreadable = error.model_copy(update={"path": str(file)}) if isinstance(error, UnreadableRows) else None
    message = error if isinstance(error, str) else "unreadable"
    with pytest.raises(ApplicationError, match=r"a\.json, line 2: an element of the array is null, but each must be"):
        write(file, error=message, unreadable=unreadable)


def test_what_spark_would_lose_is_refused_before_it_starts(file: Path) -> None:
    started: list[Path] = []
    file.write_bytes(b"id\n\xe5\n")
    with pytest.raises(ApplicationError, match=r"b\.csv is not UTF-8"):
        write(file, during=started.append)
    assert not started


async def test_heartbeats_go_on_while_files_are_read_and_stop_the_work_with_the_activity() -> None:
    heartbeats: list[Progress] = []
    pieces = 0

    def endless(on_progress: OnProgress) -> None:
        nonlocal pieces
        while True:
            pieces += 1
            on_progress(f"read {pieces} files")
            time.sleep(0.001)

    task = asyncio.create_task(run_with_progress(endless, heartbeats.append, "reading", interval=0.01))
    while len(heartbeats) < 3:
        await asyncio.sleep(0.01)
    assert heartbeats[-1].doing.startswith("read ")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    before = pieces
    await asyncio.sleep(0.05)
    assert pieces == before, "the thread has ended"
