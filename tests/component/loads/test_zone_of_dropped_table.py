"""A landing zone whose table another program dropped and created again: its files are not on main any more."""

from pathlib import Path

import pytest

from sluice.publishing.commit_properties import RUN_ID
from tests.harness.memory_system import MemorySystem
from tests.harness.sequences import new_folder
from tests.harness.zone_driver import SETTLE, ZoneDriver

pytestmark = pytest.mark.usefixtures("immediate_listings")


def settle(memory: MemorySystem, driver: ZoneDriver) -> None:
    for after in (0.0, SETTLE):
        memory.run(driver.list_files(after))


@pytest.mark.parametrize("value", [10, 11], ids=["the file that lies there", "other content"])
def test_a_dropped_table_gets_its_files_again(memory: MemorySystem, tmp_path: Path, value: int) -> None:
    memory.catalog.clear()
    name = f"dropped{value}"
    driver = ZoneDriver(memory.client, memory.settings, memory.catalog, {}, f"t.{name}", new_folder(tmp_path, name))
    driver.clock, driver.options = memory.clock, {"overwritten": "ignore"}
    memory.run(driver.deploy())
    try:
        (driver.zone / "p.csv").write_text("id,v\n1,10\n")
        settle(memory, driver)
        assert driver.table_rows() == {(1, 10): 1}
        memory.lake.recreate(driver.table)
        if value != 10:
            (driver.zone / "p.csv").write_text(f"id,v\n1,{value}\n")
        settle(memory, driver)
        assert driver.table_rows() == {(1, value): 1}
        settle(memory, driver)
        assert driver.table_rows() == {(1, value): 1}
    finally:
        memory.run(driver.remove())


def test_a_person_who_looks_at_the_files_does_not_hide_that_their_table_was_dropped(
    memory: MemorySystem, tmp_path: Path
) -> None:
    memory.catalog.clear()
    name = "shown"
    driver = ZoneDriver(memory.client, memory.settings, memory.catalog, {}, f"t.{name}", new_folder(tmp_path, name))
    driver.clock, driver.mode, driver.options = memory.clock, "merge", {"batch": {"files": 1}}
    memory.run(driver.deploy())
    try:
        for path, rows in (("b.csv", "1,10\n2,10\n"), ("a.csv", "1,20\n")):
            (driver.zone / path).write_text(f"id,v\n{rows}")
            settle(memory, driver)
        memory.lake.recreate(driver.table)
        assert memory.run(driver.show_files()) == {"a.csv": "waiting", "b.csv": "waiting"}
        settle(memory, driver)
        assert driver.table_rows() == {(1, 20): 1, (2, 10): 1}
        assert memory.run(driver.status()).batches == []
    finally:
        memory.run(driver.remove())


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_a_roll_back_that_drops_the_table_stays_in_effect(memory: MemorySystem, tmp_path: Path, mode: str) -> None:
    memory.catalog.clear()
    name = f"undone{mode}"
    driver = ZoneDriver(memory.client, memory.settings, memory.catalog, {}, f"t.{name}", new_folder(tmp_path, name))
    driver.clock, driver.mode = memory.clock, mode
    memory.run(driver.deploy())
    try:
        (driver.zone / "p.csv").write_text("id,v\n1,10\n")
        settle(memory, driver)
        assert driver.table_rows() == {(1, 10): 1}
        memory.run(driver.roll_back(driver.commits()[0].properties[RUN_ID]))
        for _ in range(2):
            settle(memory, driver)
            assert not driver.table_rows()
    finally:
        memory.run(driver.remove())
