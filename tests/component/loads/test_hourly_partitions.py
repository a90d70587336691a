"""Partitions of a backfill that are hours: with `mode: overwrite_partitions`, none removes the rows of another one."""

from pathlib import Path

import pytest

from tests.component.loads.test_repeated_backfills import driver_of
from tests.harness.memory_system import MemorySystem


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
