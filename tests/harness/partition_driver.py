"""Drive a pipeline whose partition stands under a key that the test chooses: runs, backfills, releases, roll-backs."""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError

from cli.backfills.start import StartBackfill
from engine.job import SparkJob
from lakehouse.iceberg.table_state import load_table
from runtime.backfills.backfills import (
    backfill_handle,
    cancel_backfill,
    change_backfill,
    find_running_backfill,
    start_backfill,
)
from runtime.pipeline.pipeline_input import find_input, pipeline_of_text
from runtime.run.find_run import Handle
from runtime.run.run_request import read_request
from runtime.run.start_run import StartOptions, start_run
from runtime.run.starter import Starter
from sluice.backfills.progress import partition_states
from sluice.contracts.backfill import BackfillChange, BackfillStatus, PartitionState
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.starting import PipelineText
from sluice.errors import SluiceError
from sluice.pipeline.model import Pipeline
from sluice.pipeline.placeholders import partition_values
from sluice.publishing.commit_properties import RUN_ID, WORKFLOW_ID
from tests.harness.lake_driver import Ending, LakeDriver, refused
from tests.harness.partition_model import ORDERED_KEYS, YEARS, Row

PARTITION = "{{ partition }}"


@dataclass
class BackfillEnding:
    """The state of a paused or ended backfill, or the reason why it was refused."""

    states: dict[str, PartitionState]
    status: BackfillStatus | None = None
    why: str = ""


@dataclass
class PartitionDriver(LakeDriver):
    """A driver that runs the partitions of one pipeline, by hand or in backfills."""

    key: str = "path"
    """The key of the pipeline that contains the partition."""
    mode: str = "append"

    def pipeline(self, *, strict: bool = True, approval: bool = False) -> Pipeline:
        """Return the pipeline of the first partition."""
        return self.pipeline_of(YEARS[0])

    def pipeline_of(self, partition: str) -> Pipeline:
        """Return the pipeline of a partition."""
        return pipeline_of_text(self._text, partition_values(partition))

    async def run_partition(self, partition: str) -> Ending:
        """Run one partition by hand, to its end."""
        handle = await self._start_partition(partition)
        return handle if isinstance(handle, Ending) else await self.end(handle)

    async def backfill(self, partitions: str, *, together: bool = False, at_once: int = 1) -> BackfillEnding:
        """Start a backfill; wait until it pauses or ends."""
        self.file.write_text(self._text.text)
        asked = StartBackfill(
            file=self.file,
            partitions=partitions,
            only=None,
            concurrency=at_once,
            stop_after=1,
            publish="together" if together else "each",
            again=False,
        )
        try:
            await start_backfill(self.client, self.settings.installation, asked.prepare())
        except SluiceError as error:
            return BackfillEnding({}, why=str(error))
        return await self._paused_or_ended()

    async def retry(self) -> BackfillEnding:
        """Retry the unpublished partitions of a paused backfill; wait until it pauses or ends."""
        for action in ("retry", "resume"):
            change = BackfillChange.model_validate({"action": action, "by": "ana"})
            with suppress(SluiceError):
                await change_backfill(self.client, self.settings.installation, self.pipeline().name, change)
        return await self._paused_or_ended()

    async def cancel_backfill(self) -> None:
        """Cancel a paused backfill; wait for its end."""
        handle = backfill_handle(self.client, self.settings.installation, self.pipeline().name)
        if running := await find_running_backfill(self.client, self.settings.installation, self.pipeline().name):
            await cancel_backfill(running)
        with suppress(WorkflowFailureError):
            await handle.result()

    async def published_since(self, head: str) -> list[tuple[str, str]]:
        """Return the run and the partition of each commit on main after a hash, oldest first."""
        commits = list(takewhile(lambda commit: commit.hash != head, self.catalog.history(self.catalog.main)))
        properties = [commit.properties for commit in reversed(commits) if RUN_ID in commit.properties]
        runs = [(each[WORKFLOW_ID], each[RUN_ID]) for each in properties]
        requests = [await read_request(self.client, *run) for run in runs]
        return [
            (run_id, request.pipeline.description if request and not request.resume else "")
            for (_, run_id), request in zip(runs, requests, strict=True)
        ]

    def main(self) -> str:
        """Return the hash of main."""
        return self.catalog.head(self.catalog.main)

    def table_rows(self) -> Counter[Row]:
        """Return the number of times that each row is on main."""
        version = self.catalog.table_version(self.catalog.main, self.table)
        rows = load_table(version, self.io).scan().to_arrow().to_pylist() if version else []
        return Counter((row["id"], row["v"], row["p"]) for row in rows)

    def branches_of_backfills(self) -> list[str]:
        """Return the branches on which backfills collect partitions."""
        return [each.name for each in self.catalog.list_branches("sluice/backfill/")]

    def append_year(self, job: SparkJob) -> tuple[str, list[dict[str, int]]]:
        """Return the row that the pipeline's program appends for its partition, a year or a month of it."""
        given = {
            "args": next(iter(job.args), ""),
            "environment": job.environment.get("YEAR", ""),
            "conf": job.conf.get("spark.sluice.year", ""),
        }
        year = int(given[self.key][:4])
        return self.table, [{"id": year, "v": 1, "p": year}]

    @property
    def file(self) -> Path:
        """The pipeline file."""
        return self.folder / "pipeline.yml"

    @property
    def program(self) -> Path:
        """The program of the pipeline."""
        return self.folder / "program.py"

    @property
    def _text(self) -> PipelineText:
        checks: list[Any] = [{"not_null": "id"}, {"accepted_range": {"column": "v", "min": 0}}]
        stated = {
            "name": self.table.replace(".", "-"),
            "description": PARTITION,
            "write": self._write(),
            "tables": {self.table: {"partition_by": ["p"], "checks": checks}},
        }
        return PipelineText(name=str(self.file), text=json.dumps(stated), folder=str(self.folder))

    def _write(self) -> dict[str, Any]:
        if self.key == "statements":
            year = f"CAST(left('{PARTITION}', 4) AS int)"
            return {"mode": "sql", "statements": [f"INSERT INTO {self.table} SELECT {year}, 1, {year}"]}
        if self.key in ORDERED_KEYS:
            self.program.touch()
            places = {"args": [PARTITION], "environment": {"YEAR": PARTITION}, "conf": {"spark.sluice.year": PARTITION}}
            return {"job": str(self.program), self.key: places[self.key]}
        folder = "all" if self.key == "transform" else PARTITION
        write = {"source": {"path": f"{self.folder}/{folder}/*.csv", "format": "csv"}, "mode": self.mode}
        transforms = {
            "transform": f"SELECT * FROM source WHERE p = {PARTITION}",
            "path and transform": f"SELECT id, v, {PARTITION} AS p FROM source",
        }
        transform = {"transform": transforms[self.key]} if self.key in transforms else {}
        return {**write, **transform, **({"keys": ["id"]} if self.mode == "merge" else {})}

    async def _start_partition(self, partition: str) -> Handle | Ending:
        try:
            pipeline = self.pipeline_of(partition)
            run_input = find_input(pipeline)
            starter, options = Starter("tester", self.folder), StartOptions(order=LoadOrder(partition=partition))
            started = await start_run(self.client, self.settings, pipeline, run_input, starter, options)
        except SluiceError as error:
            return refused(error)
        return started.handle

    async def _paused_or_ended(self) -> BackfillEnding:
        handle = backfill_handle(self.client, self.settings.installation, self.pipeline().name)
        while True:
            description = await handle.describe()
            if description.status != WorkflowExecutionStatus.RUNNING:
                return _ending(await handle.result())
            status = await handle.query("status", result_type=BackfillStatus)
            if status.progress.paused and not status.children:
                return _ending(status)
            await asyncio.sleep(0.02)


def _ending(status: BackfillStatus) -> BackfillEnding:
    return BackfillEnding(partition_states(status.progress), status)


def partitions_between(first: int, last: int) -> tuple[str, Sequence[str]]:
    """Return a range of partitions as `backfill` takes it, and the list of those partitions."""
    return f"{YEARS[first]}..{YEARS[last]}", YEARS[first : last + 1]
