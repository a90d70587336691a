"""Partitions and scheduled times outside of the path: each is loaded once, by the real activities."""

import asyncio
import uuid
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

from runtime.backfills.backfills import start_backfill
from sluice.backfills.progress import partition_states
from sluice.contracts.backfill import BackfillInput, BackfillState, BackfillStatus, JointPublish
from sluice.contracts.starting import EndedRun, PipelineText, StartPipelineInput
from sluice.pipeline.placeholders import partition_values, time_values
from tests.harness.memory_system import MemorySystem, memory_system
from workflows.run.start_pipeline import StartPipeline

MONTHS = ["2018-01", "2018-02", "2018-03"]
AT_FIVE = time_values(datetime(2026, 3, 2, 5, tzinfo=timezone.utc))
BY_MONTH = """\
write:
  source: {path: rides.csv}
  transform: SELECT * FROM source WHERE v = month(DATE '{{ partition.start }}')
"""


@pytest.fixture(scope="module")
def memory(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemorySystem]:
    with memory_system(home / "bin" / "temporal", tmp_path_factory.mktemp("partitions")) as system:
        yield system


class Rides:
    """A file with the rides of three months, and a pipeline that loads it."""

    def __init__(self, memory: MemorySystem, folder: Path) -> None:
        self.memory, self.folder = memory, folder
        self.name = f"p{uuid.uuid4().hex[:8]}"
        self.table = f"t.{self.name}"
        rides = "".join(f"{month}{ride},{month}\n" for month in (1, 2, 3) for ride in (1, 2, 3))
        (folder / "rides.csv").write_text(f"id,v\n{rides}")

    def stated(self, write: str) -> PipelineText:
        text = f"name: {self.name}\n{write}tables: {{{self.table}: {{checks: [not_null: [id]]}}}}\n"
        return PipelineText(name="p.yml", text=text.replace("TABLE", self.table), folder=str(self.folder))

    def backfill(
        self, write: str, *, partitions: list[str] = MONTHS, is_together: bool = False, in_order: bool = False
    ) -> BackfillStatus:
        given = BackfillInput(
            pipeline=self.stated(write),
            name=self.name,
            starter="ana",
            progress=BackfillState(partitions=partitions, window=1 if in_order else 4, in_order=in_order),
            together=JointPublish() if is_together else None,
            keep=1000.0,
        )

        async def end() -> BackfillStatus:
            handle, _ = await start_backfill(self.memory.client, self.memory.settings.installation, given)
            return await asyncio.wait_for(handle.result(), 200)

        return self.memory.run(end())

    def start(self, write: str, values: dict[str, str]) -> EndedRun:
        given = StartPipelineInput(pipeline=self.stated(write), starter=f"schedule {self.name}", values=values)
        queue = self.memory.settings.installation.sluice_task_queue
        return self.memory.run(
            self.memory.client.execute_workflow(StartPipeline.run, given, id=f"start-{uuid.uuid4()}", task_queue=queue)
        )

    @property
    def ids(self) -> list[int]:
        return self.memory.lake.ids(self.table)


@pytest.fixture
def rides(memory: MemorySystem, tmp_path: Path) -> Rides:
    return Rides(memory, tmp_path)


ALL = [11, 12, 13, 21, 22, 23, 31, 32, 33]


def states(status: BackfillStatus) -> list[str]:
    return list(partition_states(status.progress).values())


@pytest.mark.parametrize("is_together", [False, True])
def test_each_partition_of_one_file_is_loaded_once(rides: Rides, is_together: bool) -> None:
    """An earlier version skipped all but the first, with exit code 0; together, it published three of nine rows."""
    first = rides.backfill(BY_MONTH, is_together=is_together)
    assert states(first) == ["published"] * 3, first.progress.notes
    assert rides.ids == ALL, first.together
    again = rides.backfill(BY_MONTH, is_together=is_together)
    assert (states(again), rides.ids) == (["skipped"] * 3, ALL)
    fewer = rides.backfill(BY_MONTH, partitions=["2018-02"])
    assert (states(fewer), rides.ids) == (["skipped"], ALL)


def test_statements_run_once_for_each_partition(rides: Rides) -> None:
    """Their text was always part of a run's identity, and stays so."""
    rides.start("write: {source: {path: rides.csv}}\n", {})
    delete = "write: {mode: sql, statements: ['DELETE FROM TABLE WHERE v = {{ partition.month }}']}\n"
    deleted = rides.backfill(delete, partitions=MONTHS[:2], in_order=True)
    assert states(deleted) == ["published"] * 2, deleted.progress.notes
    assert rides.ids == ALL[6:]
    assert states(rides.backfill(delete, partitions=["2018-02"], in_order=True)) == ["skipped"]


def test_a_file_that_was_loaded_whole_is_no_partition_that_is_skipped(rides: Rides) -> None:
    assert rides.start("write: {source: {path: rides.csv}}\n", {}).outcome == "published"
    ended = rides.backfill(BY_MONTH, partitions=["2018-01"])
    assert states(ended) == ["failed"] and rides.ids == ALL
    assert "whole" in ended.progress.notes["2018-01"].reason and "--again" in ended.progress.notes["2018-01"].reason


def test_each_scheduled_time_is_loaded_once(rides: Rides) -> None:
    """The first was loaded; afterwards, the schedule reported `nothing new` for ever."""
    transform = "SELECT * FROM source WHERE v = {{ scheduled_for.month }}"
    write = f"write: {{source: {{path: rides.csv}}, transform: '{transform}'}}\n"
    for month in (1, 2, 2):
        ended = rides.start(write, time_values(datetime(2026, month, 1, tzinfo=timezone.utc)))
        assert ended.is_done
    assert (ended.cause, rides.ids) == ("already_published", ALL[:6])


@pytest.mark.parametrize(
    ("day", "hour"),
    [
        ((AT_FIVE, "{{ scheduled_for.date }}"), (AT_FIVE, "{{ scheduled_for.hour }}")),
        ((AT_FIVE, "{{ scheduled_for.hour }}"), (AT_FIVE, "{{ scheduled_for.date }}")),
        ((partition_values("2026-03-02"), "{{ partition }}"), (partition_values("2026-03-02T05"), "{{ partition }}")),
    ],
    ids=["day, hour", "hour, day", "partitions"],
)
def test_an_hour_of_a_loaded_day_is_refused(
    memory: MemorySystem, tmp_path: Path, day: tuple[dict[str, str], str], hour: tuple[dict[str, str], str]
) -> None:
    rides = Rides(memory, tmp_path)

    def write(used: str) -> str:
        transform = f"SELECT * FROM source WHERE v = 1 AND '{used}' != ''"
        return f'write: {{source: {{path: rides.csv}}, transform: "{transform}"}}\n'

    assert rides.start(write(day[1]), day[0]).outcome == "published"
    again = rides.start(write(hour[1]), hour[0])
    assert rides.ids == [11, 12, 13], again
    assert again.outcome == "failed" and "rows would be loaded twice" in again.reason
