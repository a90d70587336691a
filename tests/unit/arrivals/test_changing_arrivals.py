"""Changes during a listing of a landing zone: files, the zone's memory, and the duration of the listing."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lakehouse.arrivals import collector, identify_arrived
from lakehouse.source_files import find_files
from lakehouse.source_files.arriving import ArrivingFile, list_arriving
from sluice.contracts.run_request import InputFile
from sluice.errors import InputChanged, InvalidInput, ServiceUnavailable
from sluice.pipeline.source import Source
from tests.harness.memory_zone import Zone


def test_a_file_that_vanishes_before_it_is_read_is_listed_again(zone: Zone, monkeypatch: pytest.MonkeyPatch) -> None:
    zone.landing.file("a.csv", "1")
    zone.landing.file("b.csv", "2")
    zone.list_files()

    def find(source: Source, *_: Any) -> list[InputFile]:
        files = find_files(source)
        if any(each.path.endswith("a.csv") for each in files):
            raise InputChanged("a.csv was removed or renamed while the run read it")
        return files

    with monkeypatch.context() as patched:
        patched.setattr(identify_arrived, "find_files", find)
        assert zone.names(zone.list_files(after=60)) == [["b.csv"]]
    assert zone.states()["a.csv"][0] == "waiting"
    assert zone.names(zone.list_files(after=5)) == [["a.csv"]]


@pytest.mark.parametrize("becomes", ["nothing", "a folder", "another file", "an empty file"])
def test_a_file_that_changes_between_its_listing_and_its_identification_waits(
    zone: Zone, monkeypatch: pytest.MonkeyPatch, becomes: str
) -> None:
    """A supplier who begins to rewrite it may stall. Its content is then incomplete, and has to settle again."""
    file = zone.landing.file("a.csv", "id\n1\n")
    zone.landing.file("b.csv", "id\n2\n")
    zone.list_files()

    def change(*given: Any) -> list[InputFile]:
        if file.is_file() and file.read_text() == "id\n1\n":
            file.unlink()
            if becomes == "a folder":
                zone.landing.file("a.csv/b.csv", "id\n3\n")
            elif becomes.endswith("file"):
                file.write_text("id\n" if becomes == "another file" else "")
        return find_files(*given)

    with monkeypatch.context() as patched:
        patched.setattr(identify_arrived, "find_files", change)
        result = zone.list_files(after=60)
    assert (zone.names(result), result.kept_out) == ([["b.csv"]], [])
    assert zone.list_files().batches == []
    expected = {"a folder": [["b.csv"]], "another file": [["a.csv"]]}
    assert zone.names(zone.list_files(after=60)) == expected.get(becomes, [])


def test_a_listing_that_takes_long_returns_what_it_has(tmp_path: Path) -> None:
    """Files are read to be identified. The listing returns those that it has read, and another one follows at once."""
    zone = Zone(tmp_path, batch={"files": 1})
    zone.limits = {"longest_listing": 0.0}
    for name in "abc":
        zone.landing.file(f"{name}.csv", name)
    zone.list_files()
    for name in "abc":  # each listing makes at least one batch
        result = zone.list_files(after=60 if name == "a" else 0)
        assert (zone.names(result), result.look_in) == ([[f"{name}.csv"]], None if name == "c" else 0)


def test_a_file_that_is_too_large_to_be_read_is_ignored(zone: Zone) -> None:
    """The file takes no room on the disk: it is sparse."""
    with zone.landing.file("a.csv", "1").open("r+b") as file:
        file.truncate(2**40 + 1)
    zone.landing.file("b.csv", "2")
    assert zone.settled() == [["b.csv"]]
    assert zone.states()["a.csv"] == ("ignored", "it has more than 1 TiB, the limit of a landing zone: split it")


def test_a_slow_listing_leaves_time_to_identify_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zone = Zone(tmp_path, batch={"files": 1})
    zone.limits = {"longest_listing": 0.5}
    for name in "abc":
        zone.landing.file(f"{name}.csv", name)
    zone.list_files()

    def slowly(path: str, **more: Any) -> Iterator[ArrivingFile]:
        time.sleep(0.6)
        return list_arriving(path, **more)

    monkeypatch.setattr(collector, "list_arriving", slowly)
    assert zone.names(zone.list_files(after=60)) == [["a.csv"], ["b.csv"], ["c.csv"]]


def test_only_files_that_need_it_are_read_by_themselves(zone: Zone, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        zone.landing.file(f"{number:02}.csv", str(number))
    (zone.landing.path / "latest.csv").symlink_to(zone.landing.path / "19.csv")
    zone.list_files()
    changed, read = zone.landing.path / "00.csv", list[int]()

    def counted(source: Source, *given: Any) -> list[InputFile]:
        if not read:
            changed.write_text("id\n7\n")
        read.append(len(source.paths))
        return find_files(source, *given)

    monkeypatch.setattr(identify_arrived, "find_files", counted)
    (batch,) = zone.names(zone.list_files(after=60))
    assert sorted(batch) == [f"{number:02}.csv" for number in range(1, 20)] and read == [21, 1]


def test_a_memory_that_is_deleted_while_the_zone_is_listed_is_made_again(
    zone: Zone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, listings would be counted from zero, and a change would not be recorded for many listings."""
    file = zone.landing.file("a.csv", "1")
    for _ in range(5):
        zone.list_files()

    def delete(path: str, **more: Any) -> Iterator[ArrivingFile]:
        zone.collector.memory_path("p").unlink()
        return list_arriving(path, **more)

    with monkeypatch.context() as patched:
        patched.setattr(collector, "list_arriving", delete)
        with pytest.raises(ServiceUnavailable, match="was deleted during a listing"):
            zone.list_files()
    zone.list_files()
    file.write_text("id\n2\n")
    assert zone.settled() == [["a.csv"]]


@pytest.mark.parametrize("is_reported", [False, True])
def test_a_memory_that_is_deleted_during_a_listing_is_made_again(
    zone: Zone, monkeypatch: pytest.MonkeyPatch, is_reported: bool
) -> None:
    zone.landing.file("a.csv", "1")
    zone.list_files()

    def delete(*given: Any) -> list[InputFile]:
        zone.collector.memory_path("p").unlink(missing_ok=True)
        if is_reported:
            raise InvalidInput("it is not a CSV file")
        return find_files(*given)

    with monkeypatch.context() as patched:
        patched.setattr(identify_arrived, "find_files", delete)
        zone.list_files(after=60)
    zone.held = []
    assert zone.list_files().batches == [] and zone.list_files(after=60).batches != []
