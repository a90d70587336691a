"""The inputs of a joint publish: main remembers them as if each partition had been published alone."""

import pytest
from temporalio.exceptions import ApplicationError

from sluice.pipeline.scope import LoadScope
from tests.harness.joint_backfill import JointBackfill
from tests.harness.loading_run import TABLE, Folder, names, release_plan
from tests.harness.memory_catalog import MemoryCatalog

MERGE = {"mode": "merge", "keys": ["id"]}


@pytest.mark.parametrize("together", [False, True], ids=["each", "together"])
async def test_content_that_comes_back_is_loaded_although_its_path_was_left_out_as_a_copy(
    folder: Folder, catalog: MemoryCatalog, together: bool
) -> None:
    """In an earlier version, a joint publish forgot that `b.csv` had other content in between, so main kept it."""
    options = {"order_matters": True, "replaces": False}
    alone = {**options, "scope": LoadScope(path="2018-01")}
    folder.file("2018-01/b.csv", "10")
    await folder.run("2018-01/*.csv", **alone).load()
    for name in ("a", "b"):
        folder.file(f"2018-01/{name}.csv", "20")
    if together:
        backfill = JointBackfill(folder, catalog, "one", MERGE)
        assert names(folder.lake, await backfill.load("2018-01", **options)) == ["a.csv"]
        await backfill.publish()
    else:
        assert names(folder.lake, await folder.run("2018-01/*.csv", **alone).load()) == ["a.csv"]
    folder.file("2018-01/b.csv", "10")
    assert names(folder.lake, await folder.run("2018-01/*.csv", **alone).load()) == ["b.csv"]


async def test_a_partition_of_a_joint_publish_counts_as_loaded_until_its_rows_are_replaced(
    folder: Folder, catalog: MemoryCatalog
) -> None:
    """In an earlier version, main knew the identity of the whole alone: an extended backfill loaded all again."""
    reload = {"policy": "reload", "order_matters": True, "replaces": False, "replaced": "partitions"}
    backfill = JointBackfill(folder, catalog, "one", {"mode": "overwrite_partitions"})
    for month in ("2018-01", "2018-02"):
        folder.file(f"{month}/a.csv", month)
        await backfill.load(month, **reload)
    await backfill.publish()
    runs = {
        month: folder.run(f"{month}/*.csv", scope=LoadScope(path=month), **reload) for month in ("2018-01", "2018-02")
    }
    loaded = folder.lake.loaded_files

    def is_loaded(month: str) -> bool:
        return loaded.find_input("p", runs[month].digest, [TABLE], "partitions") is not None

    assert is_loaded("2018-01") and is_loaded("2018-02")
    folder.file("2018-02/a.csv", "corrected")
    await folder.run("2018-02/*.csv", scope=LoadScope(path="2018-02"), **reload).load()
    assert is_loaded("2018-01") and not is_loaded("2018-02")


async def test_a_quarantined_whole_is_not_released_after_one_of_its_inputs_was_published(
    folder: Folder, catalog: MemoryCatalog
) -> None:
    """In an earlier version, a release of a pipeline that appends its files each time appended those files again."""
    for month in ("2018-01", "2018-02"):
        folder.file(f"{month}/a.csv", month)
    rejected = JointBackfill(folder, catalog, "one", {}, loaded="reload")
    for month in ("2018-01", "2018-02"):
        await rejected.load(month, policy="reload")
    kept = await rejected.collect()
    assert release_plan(folder.lake, kept).partition == "2018-01..2018-02", "known without Temporal's history"
    second = JointBackfill(folder, catalog, "two", {}, loaded="reload")
    await second.load("2018-02", policy="reload")
    await second.publish()
    with pytest.raises(ApplicationError, match=r"contains its input for 2018-02 already, .* run w-release.* --again"):
        release_plan(folder.lake, kept)
