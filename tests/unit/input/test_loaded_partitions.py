"""The partitions of files that main has: each is loaded once, and by itself."""

from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.lake.list_files import ListFilesActivity
from lakehouse.input.loaded_files import LoadedFiles
from sluice.contracts.lake_queries import ListFilesInput, ListFilesResult
from sluice.pipeline.scope import NO_SCOPE, LoadScope
from tests.harness.activity import run_activity
from tests.harness.loading_run import TABLE, Folder, rebase, release, release_plan, roll_back


def month(number: int, *, is_path: bool = False) -> LoadScope:
    label = f"2018-{number:02}"
    return LoadScope(path=label) if is_path else LoadScope(content=label)


async def test_each_partition_of_one_file_is_loaded_once(folder: Folder, tmp_path: Path) -> None:
    """An earlier version loaded only the first, and reported for the others that main has their file."""
    folder.file("a.csv", "1")
    for number in (1, 2, 3):
        assert (await folder.run(scope=month(number)).load()).files == 1
        with pytest.raises(ApplicationError, match="already published"):
            await folder.run(scope=month(number)).write()
    assert len(folder.lake.ids(TABLE)) == 3
    listed: ListFilesResult = run_activity(
        ListFilesActivity(folder.lake.catalog, folder.lake.loaded_files).list_files, ListFilesInput()
    )
    assert [each.partition for each in listed.files if each.outcome == "published"] == [
        f"2018-0{number}" for number in (3, 2, 1)
    ]
    folder.lake.loaded_files = LoadedFiles(folder.lake.catalog, folder.lake.manifests, tmp_path / "other home")
    with pytest.raises(ApplicationError, match="by run w-r3"):  # the index was rebuilt from main's history
        await folder.run(scope=month(2)).write()
    roll_back(folder.lake, "back", "r3-".ljust(36, "0"))
    assert (await folder.run(scope=month(2)).load()).files == 1


async def test_the_same_bytes_of_two_partitions_are_loaded_for_each(folder: Folder) -> None:
    for name in ("2018-01/a.csv", "2018-02/a.csv"):
        folder.file(name, "1")
    await folder.run("2018-01/*.csv", scope=month(1, is_path=True)).load()
    await folder.run("2018-02/*.csv", scope=month(2, is_path=True)).load()
    assert len(folder.lake.ids(TABLE)) == 2
    for scope in (NO_SCOPE, LoadScope(path="2018-02-01")):  # no partition, or another name for it
        with pytest.raises(ApplicationError, match="already published"):
            await folder.run("2018-02/a.csv", scope=scope).write()


async def test_a_file_that_was_loaded_whole_is_a_partition_by_its_path_and_none_by_its_content(folder: Folder) -> None:
    folder.file("2018-01/a.csv", "1")
    await folder.run("2018-01/a.csv").load()
    with pytest.raises(ApplicationError, match="already published"):
        await folder.run("2018-01/*.csv", scope=month(1, is_path=True)).write()
    with pytest.raises(ApplicationError, match=r"loaded .*a\.csv whole into t\.x.*--again") as refused:
        await folder.run("2018-01/a.csv", scope=month(1)).write()
    assert refused.value.type == "InvalidInput", "it is not skipped"
    assert (await folder.run("2018-01/a.csv", scope=month(1), again=True).load()).files == 1


async def test_two_partitions_of_a_file_at_once_are_both_published(folder: Folder) -> None:
    folder.file("a.csv", "1")
    first, second = folder.run(scope=month(1)), folder.run(scope=month(2))
    assert first.digest != second.digest
    await folder.run().quarantine()  # so that main has the table
    mine, other = await first.write(), await second.write()
    assert first.publish(*mine).merged
    assert second.publish(*other).conflicts == [TABLE]
    assert "loaded" not in rebase(folder.lake, second, *other).why_not, "main does not hold this partition"


async def test_the_quarantine_of_a_partition_is_released_although_another_was_published(folder: Folder) -> None:
    folder.file("a.csv", "1")
    first = folder.run(scope=month(1))
    await first.quarantine()
    await folder.run(scope=month(2)).load()
    release(folder.lake, release_plan(folder.lake, first.ref.run_id), first)
    with pytest.raises(ApplicationError, match="by run w-release"):
        await folder.run(scope=month(1)).write()
