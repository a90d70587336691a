"""A hundred thousand files are listed, identified, selected and recorded; later runs load only newly arrived files."""

from pathlib import Path

import pytest

from tests.harness.loading_run import TABLE, Folder, names
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake

_MESSAGE = 64 * 1024


@pytest.mark.parametrize(
    "files", [pytest.param(5_000, marks=pytest.mark.slow), pytest.param(100_000, marks=pytest.mark.matrix)]
)
async def test_very_many_files_are_loaded_once(files: int, tmp_path: Path) -> None:
    lake = MemoryLake(MemoryCatalog(), tmp_path / "tables")
    folder = Folder(lake, tmp_path / "landing")
    for number in range(files):
        folder.file(f"{number % 100:02}/{number}.csv", f"id\n{number}\n")
    first = folder.run()
    branch = first.open()
    selected = await first.select(branch)
    assert (selected.files, selected.loaded_before) == (files, 0)
    assert len(selected.model_dump_json()) < _MESSAGE
    lake.append(branch.name, TABLE, [1], first.ref)
    assert first.publish(branch, selected).merged
    for number in range(10):
        folder.file(f"new/{number}.csv", f"id\nnew{number}\n")
    second = folder.run()
    selected = await second.select(second.open())
    assert (selected.files, selected.loaded_before) == (10, files)
    assert sorted(names(lake, selected)) == [f"{number}.csv" for number in range(10)]
    assert len(selected.model_dump_json()) < _MESSAGE
