"""Whole runs of one table on a catalog in memory: each file is loaded once, also if several people act at once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.run.find_run import Handle
from runtime.short_workflow import query_lake
from sluice.contracts.lake_queries import ListFilesInput, ListFilesResult
from tests.harness.lake_driver import REFUSED, Ending, LakeDriver
from tests.harness.memory_system import MemorySystem, memory_system


@pytest.fixture(scope="module")
def system(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemorySystem]:
    with memory_system(home / "bin" / "temporal", tmp_path_factory.mktemp("memory")) as system:
        yield system


@pytest.fixture
def driver(system: MemorySystem, tmp_path: Path) -> LakeDriver:
    folder = tmp_path / "landing"
    folder.mkdir()
    system.catalog.clear()
    return LakeDriver(system.client, system.settings, system.catalog, {}, f"t.{tmp_path.name[:60]}", folder)


def write(driver: LakeDriver, name: str, *rows: tuple[int, int]) -> None:
    (driver.folder / name).write_text("id,v\n" + "".join(f"{id},{v}\n" for id, v in rows))


async def _start(driver: LakeDriver) -> Handle:
    started = await driver.start(driver.pipeline(approval=True))
    assert not isinstance(started, Ending), started
    assert await driver.wait_for_approval(started) is None
    return started


def test_of_two_runs_at_once_that_share_a_file_one_loads_it(system: MemorySystem, driver: LakeDriver) -> None:
    write(driver, "a.csv", (1, 1))
    slow = system.run(_start(driver))
    write(driver, "b.csv", (2, 2))
    assert system.run(driver.run(driver.pipeline())).outcome == "published"
    ended = system.run(driver.decide(slow, approve=True))
    assert ended.outcome == "already published" and "a.csv" in ended.why, ended
    assert ended.result and [each.resolved for each in ended.result.conflicts] == ["rewritten"]
    assert dict(driver.rows()) == {1: 1, 2: 1} and not driver.branches_of_attempts()


def test_a_run_goes_on_with_what_is_left_of_its_files(system: MemorySystem, driver: LakeDriver) -> None:
    write(driver, "a.csv", (1, 1))
    assert system.run(driver.run(driver.pipeline())).outcome == "published"
    write(driver, "b.csv", (2, 2))
    slow = system.run(_start(driver))
    (driver.folder / "a.csv").rename(driver.folder.parent / "a.csv")
    write(driver, "c.csv", (3, 3))
    (driver.folder / "b.csv").rename(driver.folder.parent / "b.csv")
    assert system.run(driver.run(driver.pipeline())).outcome == "published"  # c.csv: the runs share no file
    for name in ("a.csv", "b.csv"):
        (driver.folder.parent / name).rename(driver.folder / name)
    ended = system.run(driver.decide(slow, approve=True))
    assert ended.outcome == "published" and ended.result and ended.result.input
    assert (ended.result.input.files, ended.result.input.loaded_before) == (1, 1)
    assert [each.resolved for each in ended.result.conflicts] == ["rebased"]
    assert dict(driver.rows()) == {1: 1, 2: 1, 3: 1}


def test_a_quarantine_whose_file_was_published_meanwhile_stays_one(system: MemorySystem, driver: LakeDriver) -> None:
    write(driver, "a.csv", (1, -1))
    kept = system.run(driver.run(driver.pipeline()))
    assert kept.outcome == "quarantined" and kept.result
    lax = driver.pipeline(strict=False)
    assert system.run(driver.run(lax)).outcome == "published"
    released = system.run(driver.release(kept.result.run_id, lax))
    assert released.outcome == "refused" and "--again" in released.why
    assert dict(driver.rows()) == {1: 1} and len(driver.quarantines()) == 1


def test_an_edited_pipeline_is_not_attached_to_the_run_under_way(system: MemorySystem, driver: LakeDriver) -> None:
    write(driver, "a.csv", (1, 1))
    slow = system.run(_start(driver))
    same = system.run(driver.start(driver.pipeline(approval=True)))
    assert not isinstance(same, Ending) and same.id == slow.id and driver.attached == 1
    edited = system.run(driver.start(driver.pipeline(strict=False, approval=True)))
    assert isinstance(edited, Ending) and edited.outcome == REFUSED and "another version of the pipeline" in edited.why
    again = system.run(driver.start(driver.pipeline(approval=True), again=True))
    assert isinstance(again, Ending) and "without --again" in again.why
    assert system.run(driver.cancel(slow)).outcome == "cancelled"


def test_a_roll_back_frees_the_files_of_its_run(system: MemorySystem, driver: LakeDriver) -> None:
    write(driver, "a.csv", (1, 1))
    first = system.run(driver.run(driver.pipeline()))
    assert first.result and system.run(driver.run(driver.pipeline())).outcome == "already published"
    assert system.run(driver.roll_back(first.result.run_id)).outcome == "published" and not driver.rows()
    assert system.run(driver.run(driver.pipeline())).outcome == "published" and dict(driver.rows()) == {1: 1}
    query = ListFilesInput(table=driver.table)
    listed = system.run(query_lake(system.client, system.settings.installation, query, ListFilesResult))
    assert [each.outcome for each in listed.files] == ["published", "rolled back"]
