"""Loaded files of a table that was dropped, and restored after another table had its name."""

import pytest
from temporalio.exceptions import ApplicationError

from lakehouse.catalog import TableCommit, TableVersion
from tests.harness.loading_run import TABLE, Folder, names
from tests.harness.memory_lake import MemoryLake


def put(lake: MemoryLake, version: TableVersion | None) -> None:
    """Put a version of the table on main, as another program does: None drops the table."""
    lake.catalog.commit_tables("main", lake.catalog.head("main"), "put", [TableCommit(TABLE, version)])


async def load(folder: Folder) -> TableVersion | None:
    """Load the files that main does not contain; return the version of the table."""
    await folder.run().load()
    return folder.lake.catalog.table_version("main", TABLE)


async def test_files_of_the_table_in_between_are_loaded_again(folder: Folder, lake: MemoryLake) -> None:
    folder.file("a.csv", "1")
    first = await load(folder)
    put(lake, None)
    folder.file("b.csv", "2")
    await load(folder)
    put(lake, first)
    assert names(lake, await folder.run().load()) == ["b.csv"]
    assert len(lake.ids(TABLE)) == 2


async def test_files_of_the_restored_table_are_not_loaded_twice(folder: Folder, lake: MemoryLake) -> None:
    folder.file("a.csv", "1")
    await load(folder)
    put(lake, None)
    folder.file("b.csv", "2")
    restored = await load(folder)
    put(lake, None)
    for name in ("c.csv", "d.csv"):
        folder.file(name, name)
        await load(folder)
    put(lake, restored)
    assert names(lake, await folder.run().load()) == ["c.csv", "d.csv"]
    with pytest.raises(ApplicationError, match="all 4 files were already published"):
        await folder.run().write()
