"""Backfills that are repeated, extended or overlap: each row is on main once, and what did not change is skipped."""

import asyncio
import json
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cli.backfills.start import StartBackfill, compare
from lakehouse.quarantine.quarantined_branches import list_quarantined_branches
from runtime.backfills.backfill_order import refuse_unloadable_partitions
from runtime.backfills.backfills import backfill_handle, start_backfill
from runtime.run.find_run import query_status
from sluice.contracts.run import WAITING
from sluice.contracts.starting import PipelineText
from sluice.errors import InvalidInput
from tests.harness.memory_system import MemorySystem
from tests.harness.partition_driver import PartitionDriver
from tests.harness.sequences import new_folder
from workflows.write_audit_publish import WriteAuditPublish

YEARS = ("2018", "2019", "2020", "2021")


@dataclass
class Spans(PartitionDriver):
    """A driver whose pipeline selects the rows of a partition by its first day and its end."""

    def _write(self) -> dict[str, Any]:
        first, end = (f"CAST(replace('{{{{ partition.{part} }}}}', '-', '') AS INT)" for part in ("start", "end"))
        return {
            "source": {"path": f"{self.folder}/all/*.csv", "format": "csv"},
            "transform": f"SELECT * FROM source WHERE p >= {first} AND p < {end}",
        }


@dataclass
class Approved(PartitionDriver):
    """A driver whose pipeline waits for an approval."""

    approval: str | dict[str, int] = field(default_factory=lambda: {"required": 1})

    @property
    def _text(self) -> PipelineText:
        text = super()._text
        return text.model_copy(update={"text": json.dumps({**json.loads(text.text), "approval": self.approval})})

    async def reject_joint_publish(self, partitions: str) -> None:
        """Start a backfill that publishes together, and reject the run that waits for approval."""
        self.file.write_text(self._text.text)
        asked = StartBackfill(self.file, partitions, None, 1, 1, "together", again=False)
        await start_backfill(self.client, self.settings.installation, asked.prepare())
        while True:
            async for each in self.client.list_workflows("WorkflowType = 'WriteAuditPublish'"):
                handle = self.client.get_workflow_handle_for(WriteAuditPublish.run, each.id)
                status = await query_status(handle)
                if status and status.stage == WAITING:
                    await self.decide(handle, approve=False)
                    await backfill_handle(self.client, self.settings.installation, self.pipeline().name).result()
                    return
            await asyncio.sleep(0.1)


@dataclass
class Moving(PartitionDriver):
    """A driver whose pipeline keeps its name when its table is another one."""

    @property
    def _text(self) -> PipelineText:
        text = super()._text
        return text.model_copy(update={"text": json.dumps({**json.loads(text.text), "name": "moving"})})


def driver_of(memory: MemorySystem, folder: Path, of: type[PartitionDriver] = PartitionDriver) -> PartitionDriver:
    memory.catalog.clear()
    table = f"r{folder.name[-8:]}"
    driver = of(memory.client, memory.settings, memory.catalog, {}, f"t.{table}", new_folder(folder, table))
    driver.key, driver.mode = "path", "merge"
    return driver


def write_years(driver: PartitionDriver) -> None:
    """Write a file of each year: a row of its own, and one with the key of all years."""
    for year in YEARS:
        (driver.folder / year).mkdir()
        (driver.folder / year / "f.csv").write_text(f"id,v,p\n{year},1,{year}\n1,{year},{year}\n")


@pytest.mark.parametrize("together", [False, True], ids=["each", "together"])
@pytest.mark.parametrize("mode", ["merge", "overwrite_partitions"])
def test_an_extended_backfill_loads_what_is_new(
    memory: MemorySystem, tmp_path: Path, mode: str, together: bool
) -> None:
    """In an earlier version, all partitions of a joint publish that overwrote partitions were loaded again."""
    driver = driver_of(memory, tmp_path)
    driver.mode = mode
    write_years(driver)
    first = memory.run(driver.backfill("2018..2020", together=together))
    assert set(first.states.values()) == {"published"}, first
    again = memory.run(driver.backfill("2018..2021", together=together))
    assert again.states == {"2018": "skipped", "2019": "skipped", "2020": "skipped", "2021": "published"}, again
    shared = YEARS[-1:] if mode == "merge" else YEARS
    rows = {(1, int(year), int(year)): 1 for year in shared} | {(int(year), 1, int(year)): 1 for year in YEARS}
    assert driver.table_rows() == rows


def test_an_older_partition_with_new_rows_is_refused(memory: MemorySystem, tmp_path: Path) -> None:
    driver = driver_of(memory, tmp_path)
    write_years(driver)
    memory.run(driver.backfill("2018..2020"))
    (driver.folder / "2018" / "f.csv").write_text("id,v,p\n1,7,2018\n")
    before = driver.table_rows()
    ended = memory.run(driver.backfill("2018..2021"))
    assert ended.states["2018"] == "failed" and driver.table_rows() == before
    assert ended.status and "2018 is older than 2020" in ended.status.progress.notes["2018"].reason


@pytest.mark.parametrize("key", ["statements", "args"])
def test_months_of_a_year_without_files_are_refused(memory: MemorySystem, tmp_path: Path, key: str) -> None:
    """In an earlier version, each row of the year was there twice, with exit code 0."""
    driver = driver_of(memory, tmp_path)
    driver.key, driver.mode = key, "append"
    memory.engine.programs = {driver.program: driver.append_year}
    assert set(memory.run(driver.backfill("2018")).states.values()) == {"published"}
    assert set(memory.run(driver.backfill("2018..2019")).states.values()) == {"skipped", "published"}
    rows = driver.table_rows()
    ended = memory.run(driver.backfill("2019-01..2019-02"))
    assert ended.states == {"2019-01": "failed", "2019-02": "waiting"} and driver.table_rows() == rows
    assert ended.status and "and 2019-01 would now be loaded" in ended.status.progress.notes["2019-01"].reason
    memory.run(driver.cancel_backfill())
    for months, is_refused in (("2019-03..2020-01", True), ("2020-01..2020-02", False)):
        given = StartBackfill(driver.file, months, None, 1, 1, "each", again=False).prepare()
        answer = memory.run(compare(driver.client, driver.settings.installation, given))
        assert ("--again" in answer.problem, bool(answer.problem)) == (is_refused, is_refused), "--dry-run shows it"
        with pytest.raises(InvalidInput, match="--again") if is_refused else nullcontext():
            memory.run(refuse_unloadable_partitions(driver.client, driver.settings.installation, given))


def test_partitions_of_a_dropped_table_are_loaded_again(memory: MemorySystem, tmp_path: Path) -> None:
    driver = driver_of(memory, tmp_path)
    write_years(driver)
    memory.run(driver.backfill("2018..2020"))
    rows = driver.table_rows()
    memory.lake.recreate(driver.table)
    ended = memory.run(driver.backfill("2018..2020"))
    assert set(ended.states.values()) == {"published"} and driver.table_rows() == rows, ended


@pytest.mark.parametrize("mode", ["merge", "overwrite_partitions"])
def test_partitions_of_another_table_are_loaded(memory: MemorySystem, tmp_path: Path, mode: str) -> None:
    driver = driver_of(memory, tmp_path, Moving)
    driver.mode = mode
    for year in YEARS[:2]:
        (driver.folder / year).mkdir()
        (driver.folder / year / "f.csv").write_text(f"id,v,p\n{year},1,{year}\n")
    memory.run(driver.backfill("2018..2019"))
    rows = driver.table_rows()
    driver.table += "_new"
    ended = memory.run(driver.backfill("2018..2019"))
    assert set(ended.states.values()) == {"published"}, ended
    assert driver.table_rows() == rows


def test_a_joint_publish_is_as_young_as_its_latest_partition(memory: MemorySystem, tmp_path: Path) -> None:
    driver = driver_of(memory, tmp_path)
    write_years(driver)
    (driver.folder / "north").mkdir()
    (driver.folder / "north" / "f.csv").write_text("id,v,p\n5,1,0\n")
    assert memory.run(driver.backfill("2018,2020,north", together=True)).states["2020"] == "published"
    ended = memory.run(driver.run_partition("2019"))
    assert ended.outcome != "published" and "2019 is older than north..2020" in ended.why, ended


def test_a_paused_backfill_that_is_started_again_loads_what_was_rolled_back(
    memory: MemorySystem, tmp_path: Path
) -> None:
    driver = driver_of(memory, tmp_path)
    write_years(driver)
    late = driver.folder / "2019"
    late.rename(driver.folder / "held")
    paused = memory.run(driver.backfill("2018..2020"))
    assert paused.states == {"2018": "published", "2019": "failed", "2020": "waiting"}, paused
    ((run_id, _),) = memory.run(driver.published_since(""))
    assert memory.run(driver.roll_back(run_id)).outcome == "published"
    (driver.folder / "held").rename(late)
    ended = memory.run(driver.backfill("2018..2020"))
    assert set(ended.states.values()) == {"published"}, ended
    assert driver.table_rows() == {(1, 2020, 2020): 1, **{(int(year), 1, int(year)): 1 for year in YEARS[:3]}}


def test_a_joint_publish_ends_if_a_partition_that_it_skipped_was_rolled_back(
    memory: MemorySystem, tmp_path: Path
) -> None:
    driver = driver_of(memory, tmp_path)
    driver.mode = "append"
    (driver.folder / "2018").mkdir()
    (driver.folder / "2018" / "f.csv").write_text("id,v,p\n1,1,2018\n")
    run = memory.run(driver.run_partition("2018"))
    assert run.result, run
    paused = memory.run(driver.backfill("2018..2019", together=True))
    assert paused.states == {"2018": "skipped", "2019": "failed"}, paused
    assert memory.run(driver.roll_back(run.result.run_id)).outcome == "published"
    (driver.folder / "2019").mkdir()
    (driver.folder / "2019" / "f.csv").write_text("id,v,p\n2,1,2019\n")
    ended = memory.run(driver.retry())
    together = ended.status.together if ended.status else None
    assert together and together.ended and "was rolled back on main" in together.ended.reason, ended
    assert not driver.table_rows() and not driver.branches_of_backfills()
    assert set(memory.run(driver.backfill("2018..2019", together=True)).states.values()) == {"published"}
    assert sum(driver.table_rows().values()) == 2


def test_a_rejected_joint_publish_can_be_released(memory: MemorySystem, tmp_path: Path) -> None:
    driver = driver_of(memory, tmp_path, Approved)
    assert isinstance(driver, Approved)
    write_years(driver)
    memory.run(driver.reject_joint_publish("2019..2020"))
    (quarantine,) = [each.branch for each in list_quarantined_branches(driver.catalog)]
    driver.approval = "auto"
    released = memory.run(driver.release(quarantine, driver.pipeline()))
    assert released.outcome == "published" and sum(driver.table_rows().values()) == 3, released
    older = memory.run(driver.run_partition("2018"))
    assert older.outcome != "published" and "2018 is older than 2019..2020" in older.why, older


def test_partitions_that_contain_each_other_are_not_loaded_both(memory: MemorySystem, tmp_path: Path) -> None:
    driver = driver_of(memory, tmp_path, Spans)
    (driver.folder / "all").mkdir()
    (driver.folder / "all" / "f.csv").write_text("id,v,p\n1,1,20180115\n2,1,20180120\n")
    both = memory.run(driver.backfill("2018-01,2018-01-15"))
    assert not both.states and "writes rows of 2018-01-15 for 2018-01 too" in both.why, both
    assert memory.run(driver.backfill("2018-01")).states == {"2018-01": "published"}
    for overlapping in ("2018-01-15", "2018"):
        ended = memory.run(driver.backfill(overlapping))
        assert ended.states == {overlapping: "failed"}, ended
        assert ended.status and "rows would be loaded twice" in ended.status.progress.notes[overlapping].reason
        memory.run(driver.cancel_backfill())
    assert set(driver.table_rows().values()) == {1}


@pytest.mark.parametrize("partitions", ["h05,h06", "2018-01-01T05,2018-01-01T06"], ids=["names", "hours"])
def test_an_hour_removes_no_rows_of_another_hour(memory: MemorySystem, tmp_path: Path, partitions: str) -> None:
    driver = driver_of(memory, tmp_path)
    driver.mode = "overwrite_partitions"
    first, second = partitions.split(",")
    for id, hour in enumerate((first, second), 1):
        (driver.folder / hour).mkdir()
        (driver.folder / hour / "f.csv").write_text(f"id,v,p\n{id},1,20180101\n")
    ended = memory.run(driver.backfill(partitions))
    assert driver.table_rows() == {(1, 1, 20180101): 1}, ended.states
    assert ended.states == {first: "published", second: "failed"}
