"""Files of runs: only their owner can read them, a stranger's answer is refused, and they are removed after a time."""

import os
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.client import Client, WorkflowExecutionStatus

from activities.run.job_folder import create_job_folder
from engine.duckdb_session import DuckDBSession
from engine.private_files import open_private, private_folder, write_private
from engine.process.heartbeat import no_heartbeat
from engine.process.supervise import run_supervised
from engine.spark.built_in_job import read_answer
from engine.spark.configuration import write_properties
from runtime.run.run_files import remove_old_run_files
from sluice.contracts.references import RunRef
from sluice.contracts.spark_jobs import JobAnswer
from sluice.errors import JobFailed
from sluice.sealed_answer import new_answer_key, seal_answer
from sluice.settings import Settings

RUN = RunRef(run_id=str(uuid.uuid4()), workflow_id="w", pipeline="p", label="p", attempt=1)


@pytest.fixture(autouse=True)
def _permissive() -> Iterator[None]:
    """Set a permissive umask: the files must be private under any umask of the worker."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_every_file_of_a_run_is_its_owners(tmp_path: Path) -> None:
    settings = Settings.of(sluice_home=tmp_path)
    folder = create_job_folder(settings.storage, RUN, "write")
    assert {mode(each) for each in (settings.storage.runs, *settings.storage.runs.rglob("*"))} == {0o700}
    (folder / "old").touch(mode=0o666)
    files = [write_private(folder / "old", "text"), write_properties(folder / "spark.properties", {"a": "secret"})]
    with open_private(folder / "spark.log") as log:
        log.write("line\n")
    with DuckDBSession("256MB", folder / "scratch"):
        assert mode(folder / "scratch") == 0o700
    assert {mode(each) for each in (*files, folder / "spark.log")} == {0o600}


async def test_the_log_of_a_job_is_its_owners(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}  # its modules would be anybody's, too
    result = await run_supervised(["echo", "hello"], environment, tmp_path, no_heartbeat)
    assert "hello" in result.log.read_text() and mode(result.log) == 0o600


def test_an_answer_is_read_only_with_the_key_of_its_job(tmp_path: Path) -> None:
    file, key = tmp_path / "answer.json", new_answer_key()
    assert len({key, new_answer_key()}) == 2
    answer = JobAnswer(rows_read=3, rows_written=3)
    file.write_text(seal_answer(answer, key))
    assert read_answer(file, key) == answer
    forged = seal_answer(JobAnswer(rows_read=3, rows_written=4), new_answer_key())
    changed = seal_answer(answer, key).replace('\\"rows_written\\":3', '\\"rows_written\\":4')
    assert changed != seal_answer(answer, key)
    for text in (forged, changed, answer.model_dump_json(), "", "{", '{"answer": "{}", "seal": ""}', "\x00\udcff"):
        file.write_text(text, errors="surrogateescape")
        with pytest.raises(JobFailed, match="the job did not write it"):
            read_answer(file, key)
    file.write_text(seal_answer(answer, ""))
    with pytest.raises(JobFailed, match="the job did not write it"):
        read_answer(file, "")


class FakeClient:
    """A Temporal client with these runs."""

    def __init__(self, **states: WorkflowExecutionStatus) -> None:
        self.states, self.queries = {name.replace("_", "-"): state for name, state in states.items()}, 0

    async def list_workflows(self, query: str, limit: int) -> AsyncIterator[Any]:
        self.queries += 1
        for run_id, status in self.states.items():
            if query == f'RunId = "{run_id}"':
                yield SimpleNamespace(status=status)


async def test_files_of_runs_that_ended_long_ago_are_removed(tmp_path: Path) -> None:
    settings = Settings.of(sluice_home=tmp_path, sluice_keep_run_files=3600)
    names = [str(uuid.uuid4()) for _ in range(4)]
    ended, running, forgotten, recent = (settings.storage.runs / name for name in names)
    others = [settings.storage.runs / "duckdb", settings.storage.runs / "notes"]
    outside = private_folder(tmp_path / "outside")
    for folder in (ended, running, forgotten, recent, *others):
        private_folder(folder / "a1" / "write")
        (folder / "a1" / "write" / "spark.log").touch()
    link = settings.storage.runs / str(uuid.uuid4())
    link.symlink_to(outside)
    past = time.time() - 7200
    for path in [*settings.storage.runs.rglob("*"), outside]:
        os.utime(path, (past, past), follow_symlinks=False)
    os.utime(recent / "a1" / "write" / "spark.log")
    client = FakeClient()
    client.states = {names[0]: WorkflowExecutionStatus.COMPLETED, names[1]: WorkflowExecutionStatus.RUNNING}
    assert await remove_old_run_files(cast(Client, client), settings.storage) == 2
    assert not ended.exists() and not forgotten.exists()
    assert all(each.exists() for each in (running, recent, *others, link, outside))
    assert client.queries == 3, "a recent one is not asked for"
