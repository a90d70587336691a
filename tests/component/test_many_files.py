"""A hundred thousand files: listed, identified, selected and remembered; later runs load what arrives after them."""

from pathlib import Path

import pytest

from tests.harness.loading_run import TABLE, Folder, names
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake

_FILES = 100_000
_MESSAGE = 64 * 1024


@pytest.mark.slow
async def test_a_hundred_thousand_files_are_loaded_once(tmp_path: Path) -> None:
    lake = MemoryLake(MemoryCatalog(), tmp_path / "tables")
    folder = Folder(lake, tmp_path / "landing")
    for number in range(_FILES):
        folder.file(f"{number % 100:02}/{number}.csv", f"id\n{number}\n")
    first = folder.run()
    branch = first.open()
    selected = await first.select(branch)
    assert (selected.files, selected.loaded_before) == (_FILES, 0)
    assert len(selected.model_dump_json()) < _MESSAGE
    lake.append(branch.name, TABLE, [1], first.ref)
    assert first.publish(branch, selected).merged
    for number in range(10):
        folder.file(f"new/{number}.csv", f"id\nnew{number}\n")
    second = folder.run()
    selected = await second.select(second.open())
    assert (selected.files, selected.loaded_before) == (10, _FILES)
    assert sorted(names(lake, selected)) == [f"{number}.csv" for number in range(10)]
    assert len(selected.model_dump_json()) < _MESSAGE
