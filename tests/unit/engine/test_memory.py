"""The heap of a driver fits the machine."""

from pathlib import Path

import pytest

from engine.spark import memory
from sluice.settings import read_settings

GIB = 2**30


@pytest.mark.parametrize(
    ("machine", "drivers", "heap"),
    [(16 * GIB, 8, "1024m"), (24 * GIB, 2, "6144m"), (256 * GIB, 4, "8192m"), (2 * GIB, 4, "1024m")],
)
def test_drivers_share_half_of_the_machine(machine: int, drivers: int, heap: str) -> None:
    assert memory.driver_memory(read_settings({}).spark, drivers, machine) == heap


def test_a_setting_stands() -> None:
    assert memory.driver_memory(read_settings({"SPARK_DRIVER_MEMORY": "3g"}).spark, 8) == "3g"


def test_a_container_has_less_than_its_machine(tmp_path: Path) -> None:
    files = (tmp_path / "memory.max", tmp_path / "absent")
    files[0].write_text(f"{GIB}\n")
    assert memory.machine_memory(files) == GIB
    files[0].write_text("max\n")
    assert memory.machine_memory(files) > GIB
