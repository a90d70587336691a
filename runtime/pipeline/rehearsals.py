"""Rehearsals: runs of a copy of a pipeline on generated rows, never published."""

import asyncio
import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from temporalio.client import Client, WorkflowFailureError

from generation.judging import Row
from generation.rehearsal import RehearsalPlan
from generation.requests import Request, checks_of, generated_table
from lakehouse.source_files import suffix_of
from runtime.pipeline.generated_files import source_of, write_file
from runtime.pipeline.pipeline_input import inspect_input
from runtime.run.find_run import Handle, read_result
from runtime.run.start_run import RunHandle, StartOptions, start_run
from runtime.run.starter import Starter
from runtime.short_workflow import query_lake
from sluice.checks.verdicts import CheckResult
from sluice.contracts.lake_queries import QueryRows, QueryTablesInput
from sluice.contracts.run import RunResult
from sluice.errors import InvalidPipeline, ServiceUnavailable
from sluice.identifiers import REHEARSAL_SUFFIX, pipeline_name
from sluice.pipeline.model import Pipeline
from sluice.pipeline.publish_options import PublishOptions
from sluice.pipeline.source import Source
from sluice.setting_groups import InstallationSettings, StorageSettings
from sluice.settings import Settings

_KEPT = 86400
"""Age after which the folder of a rehearsal is left over and is deleted, in seconds."""


def check_rehearsable(pipeline: Pipeline) -> None:
    """Check that a pipeline can be rehearsed, as far as its file shows.

    Raises:
        InvalidPipeline: the pipeline cannot be rehearsed.
    """
    generated_table(pipeline)
    if not pipeline.write.built_in:
        raise InvalidPipeline(
            f"{pipeline.name} cannot be rehearsed: a program of yours writes it, and Sluice cannot know what it does "
            "with generated rows"
        )
    if not checks_of(pipeline):
        raise InvalidPipeline(f"{pipeline.name} has no checks: there is nothing to rehearse")
    pipeline_name(pipeline.name + REHEARSAL_SUFFIX)


def rehearsal_copy(pipeline: Pipeline, path: str, left_out: Mapping[int, str]) -> Pipeline:
    """Return a copy of a pipeline whose runs load a generated file and notify nobody.

    On the branch, the generated rows replace the rows of the table, so that checks see only generated rows.

    Args:
        left_out: checks without a fault, by position.

    Raises:
        InvalidPipeline: the copy is not a valid pipeline.
    """
    name, source = generated_table(pipeline), pipeline.write.source
    assert source, "rows are generated for pipelines with a source"
    table = pipeline.tables[name]
    checks = [check for index, check in enumerate(table.checks) if index not in left_out]
    write = {"source": _loaded_once(source, path), "mode": "overwrite", "keys": [], "on_conflict": "auto"}
    bad_rows = {"on_bad_rows": "fail", "max_bad_rows": None, "max_bad_proportion": None}
    copy = pipeline.model_copy(
        update={
            "name": pipeline.name + REHEARSAL_SUFFIX,
            "branch": None,
            "write": pipeline.write.model_copy(update=write),
            "tables": {name: table.model_copy(update={"checks": checks, **bad_rows})},
            "approval": None,
            "publish": PublishOptions(),
            "on_failure": "discard",
            "after_publish": [],
            "schedule": None,
            "arrival": None,
        }
    )
    return _validated(copy)


def _loaded_once(source: Source, path: str) -> Source:
    return source.model_copy(update={"path": path, "loaded": None})


def _validated(copy: Pipeline) -> Pipeline:
    """Return the copy if a worker accepts it. A refused copy would fail each run.

    Raises:
        InvalidPipeline: it is not valid.
    """
    try:
        return Pipeline.model_validate(copy.model_dump(by_alias=True))
    except ValidationError as error:
        reasons = "; ".join(each["msg"] for each in error.errors())
        raise InvalidPipeline(f"the pipeline cannot be rehearsed by `mode: overwrite`: {reasons}") from error


@dataclass(frozen=True)
class RehearsalRuns:
    """Runs the batches of one rehearsal, one after the other."""

    client: Client
    settings: Settings
    starter: Starter
    pipeline: Pipeline
    request: Request
    plan: RehearsalPlan
    folder: Path

    async def run(self, rows: Sequence[Row], number: int) -> RunResult:
        """Write and audit rows on a separate branch, and return the result. A cancellation ends the run.

        Raises:
            ServiceUnavailable: the run could not reach a service.
        """
        source = source_of(self.pipeline)
        path = self.folder / f"{number}{suffix_of(source.reader_format())}"
        write_file(path, rows, self.request, source)
        copy = rehearsal_copy(self.pipeline, str(path), self.plan.left_out)
        run_input = inspect_input(copy).run_input
        options = StartOptions(publish=False)
        starting = asyncio.ensure_future(start_run(self.client, self.settings, copy, run_input, self.starter, options))
        try:
            started = await asyncio.shield(starting)
            result = await self._result(started.handle)
        except asyncio.CancelledError:
            await _cancel(starting)
            raise
        if result.cause == "unreachable":
            raise ServiceUnavailable(f"{result.workflow_id}: {result.reason}")
        return result

    def verdicts(self, result: RunResult) -> dict[int, CheckResult]:
        """Return the verdicts of a run, by the position of the check in the pipeline."""
        checks = checks_of(self.pipeline)
        positions = [index for index in range(len(checks)) if index not in self.plan.left_out]
        return {positions[verdict.index]: verdict for verdict in result.checks if verdict.index >= 0}

    async def _result(self, handle: Handle) -> RunResult:
        with contextlib.suppress(WorkflowFailureError):
            await handle.result(follow_runs=False)
        result = await read_result(self.client, await handle.describe())
        if result is None:
            raise ServiceUnavailable(f"{handle.id} was terminated: its branch may stay until the reaper runs")
        return result


async def _cancel(starting: "asyncio.Future[RunHandle]") -> None:
    """Cancel a run, and wait until its branch is deleted."""
    handle = (await starting).handle
    await handle.cancel()
    with contextlib.suppress(WorkflowFailureError):
        await handle.result(follow_runs=False)


@contextlib.contextmanager
def rehearsal_folder(settings: StorageSettings, pipeline: Pipeline) -> Iterator[Path]:
    """Yield a folder that workers can read, for the files of a rehearsal, and delete it in the end."""
    parent = settings.sluice_home.absolute() / "rehearsals"
    parent.mkdir(parents=True, exist_ok=True)
    _remove_old(parent)
    folder = Path(tempfile.mkdtemp(prefix=f"{pipeline.name}-", dir=parent))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_old(parent: Path) -> None:
    """Delete the folders of rehearsals that were killed."""
    for folder in parent.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > _KEPT:
                shutil.rmtree(folder)


async def head_of_main(client: Client, settings: InstallationSettings) -> str:
    """Return the hash of the head of main, as a worker reads it.

    Raises:
        ServiceUnavailable: no worker answers.
    """
    return (await query_lake(client, settings, QueryTablesInput(sql="SHOW TABLES"), QueryRows)).head
