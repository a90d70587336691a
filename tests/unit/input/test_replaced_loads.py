"""Loads whose rows a later load replaced: their input may be loaded again without `--again`."""

import pytest

from sluice.pipeline.scope import LoadScope
from sluice.pipeline.write_modes import Replaced
from tests.harness.compaction import compact
from tests.harness.loading_run import TABLE, Folder


async def test_what_a_later_load_replaced_may_be_loaded_again(folder: Folder) -> None:
    """A table is overwritten by 10, 20, 10. In an earlier version, the third was "already published"; main kept 20."""
    january, february = LoadScope(path="2018-01"), LoadScope(path="2018-02")
    folder.file("a.csv", "10")
    first = folder.run(policy="reload", scope=january)
    await first.load()
    loaded = folder.lake.loaded_files
    assert loaded.find_input("p", first.digest, [TABLE], "table")
    folder.file("a.csv", "30")
    await folder.run(policy="reload", scope=february).load()
    assert loaded.find_input("p", first.digest, [TABLE], "partitions"), "another partition replaces nothing of it"
    assert loaded.find_input("p", first.digest, [TABLE], "table") is None
    folder.file("a.csv", "20")
    second = folder.run(policy="reload", scope=january)
    await second.load()
    assert loaded.find_input("p", first.digest, [TABLE]) and not loaded.find_input("q", first.digest, [TABLE])
    assert loaded.find_input("p", first.digest, [TABLE], "partitions") is None
    assert loaded.find_input("p", second.digest, [TABLE], "partitions")


async def test_what_the_pipeline_replaced_without_a_partition_may_be_loaded_again(folder: Folder) -> None:
    """A person replaces a month by hand, then loads it again from its file. In an earlier version, it was skipped."""
    january, february = LoadScope(path="2018-01"), LoadScope(path="2018-02")
    folder.file("a.csv", "10")
    first = folder.run(policy="reload", scope=january, replaced="partitions")
    await first.load()
    folder.file("a.csv", "15")
    await folder.run(policy="reload", scope=february, replaced="partitions").load()
    loaded = folder.lake.loaded_files
    assert loaded.find_input("p", first.digest, [TABLE], "partitions"), "main has its rows"
    folder.lake.change("main", TABLE, compact)
    assert loaded.find_input("p", first.digest, [TABLE], "partitions"), "a compaction replaces no rows"
    folder.file("a.csv", "20")
    await folder.run(policy="reload", replaces=True, replaced="partitions").load()
    assert loaded.find_input("p", first.digest, [TABLE], "partitions") is None


@pytest.mark.parametrize("replaced", ["table", "partitions"])
async def test_what_another_pipeline_replaced_may_be_loaded_again(replaced: Replaced, folder: Folder) -> None:
    """In an earlier version, only later loads of the same pipeline counted: main had the rows of the other one."""
    folder.file("p/a.csv", "10")
    folder.file("q/a.csv", "20")
    first = folder.run("p", policy="reload", replaces=True, replaced=replaced)
    await first.load()
    loaded = folder.lake.loaded_files
    await folder.run("q", pipeline="q").load()
    assert loaded.find_input("p", first.digest, [TABLE], replaced), "an append replaces nothing"
    folder.file("q/a.csv", "25")
    await folder.run("q", policy="reload", pipeline="q", replaced=replaced).load()
    assert loaded.find_input("p", first.digest, [TABLE], replaced), "it has left the rows of the first as they were"
    folder.file("q/a.csv", "30")
    replacing = folder.run("q", policy="reload", pipeline="q", replaces=True, replaced=replaced)
    await replacing.load()
    assert loaded.find_input("p", first.digest, [TABLE], replaced) is None
    assert loaded.find_input("q", replacing.digest, [TABLE], replaced)
    await folder.run("p", policy="reload", replaces=True, replaced=replaced).load()
    assert loaded.find_input("p", first.digest, [TABLE], replaced)
    assert loaded.find_input("q", replacing.digest, [TABLE], replaced) is None
