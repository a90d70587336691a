"""The order of the files of one listing of a landing zone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehouse.arrivals.zone_memory import ZoneMemory
from lakehouse.source_files.arriving import ArrivingFile


def file(name: str, written_at: float) -> ArrivingFile:
    return ArrivingFile(f"/zone/{name}", 1, f"{written_at}", written_at)


def names(memory: ZoneMemory) -> list[str]:
    return [each.path.removeprefix("/zone/") for each in memory.waiting(1000)]


def test_a_pause_separates_deliveries_and_names_order_each(tmp_path: Path) -> None:
    memory = ZoneMemory(tmp_path / "zone.sqlite")
    times = {"z": 1000, "m": 1050, "a": 1100, "k": 1161, "b": 1200}
    memory.record_listing([file(name, at) for name, at in times.items()], 5000, 60)
    assert names(memory) == ["a", "m", "z", "b", "k"]


def test_files_of_a_later_listing_are_younger_whenever_they_were_written(tmp_path: Path) -> None:
    memory = ZoneMemory(tmp_path / "zone.sqlite")
    memory.record_listing([file("b", 2000)], 5000, 60)
    memory.record_listing([file("b", 2000), file("a", 1000)], 5060, 60)
    memory.record_files(["/zone/0"], [file("0", 10)], 5100, 60)
    assert names(memory) == ["b", "a", "0"]


def test_a_listing_that_failed_leaves_the_order_to_the_next(tmp_path: Path) -> None:
    memory = ZoneMemory(tmp_path / "zone.sqlite")
    files = [file(f"f{number:03}", 2000) for number in range(450)] + [file("g", 1000)]

    def failing() -> Iterator[ArrivingFile]:
        yield from files[:420]
        raise OSError("the store does not answer")

    with pytest.raises(OSError, match="does not answer"):
        memory.record_listing(failing(), 5000, 60)
    memory.record_listing(files, 5010, 60)
    assert names(memory)[:2] == ["g", "f000"]
