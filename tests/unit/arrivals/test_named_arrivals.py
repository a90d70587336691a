"""Listings of named files of a landing zone: they examine no other file of the zone."""

import os
from pathlib import Path
from typing import Any

import pytest

from lakehouse.arrivals import collector, identify_arrived
from lakehouse.source_files import arriving
from lakehouse.source_files.arriving import find_arriving, list_arriving
from sluice.errors import InvalidInput, ServiceUnavailable
from tests.harness.memory_zone import Zone


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    """A zone that was listed once."""
    zone = Zone(tmp_path)
    zone.landing.file("loaded.csv", "0")
    zone.list_files()
    return zone


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that collects all later listings."""
    listed: list[str] = []

    def counted(path: str, **more: Any) -> Any:
        listed.append(path)
        return list_arriving(path, **more)

    monkeypatch.setattr(collector, "list_arriving", counted)
    return listed


async def test_a_named_file_is_loaded_without_a_listing(zone: Zone, listings: list[str]) -> None:
    zone.list_files(after=60)
    await zone.load()
    file = zone.landing.file("a.csv", "1")
    zone.landing.file("unnoticed.csv", "2")
    first = zone.list_files(files=[file])
    assert (first.batches, first.look_in, first.counts) == ([], 60, {"waiting": 2})
    assert len(listings) == 1
    assert zone.names(zone.list_files(after=60, files=[])) == [["a.csv"]]
    await zone.load()
    assert zone.list_files(files=[file]).counts == {"loaded": 2}
    assert len(listings) == 1
    assert zone.settled() == [["unnoticed.csv"]], "a listing finds what the notifications missed"


def test_a_file_that_changes_or_vanishes_while_it_settles_is_not_loaded(zone: Zone, listings: list[str]) -> None:
    growing, removed = zone.landing.file("growing.csv", "1"), zone.landing.file("removed.csv", "2")
    zone.list_files(files=[growing, removed])
    growing.write_text("1\n2")
    removed.unlink()
    result = zone.list_files(after=60, files=[])
    assert (result.batches, result.counts, result.look_in) == ([], {"waiting": 2}, 60)
    assert zone.names(zone.list_files(after=60, files=[])) == [["loaded.csv", "growing.csv"]]
    assert listings == []


def test_a_file_that_changed_in_its_batch_settles_again(zone: Zone, listings: list[str]) -> None:
    assert zone.names(zone.list_files(after=60)) == [["loaded.csv"]]
    zone.landing.file("loaded.csv", "9")
    zone.held = []  # its run ended because the file changed meanwhile
    listings.clear()
    assert zone.list_files(after=5, files=[]).batches == []
    assert zone.names(zone.list_files(after=60, files=[])) == [["loaded.csv"]]
    assert listings == []


async def test_a_worker_that_did_not_do_the_listing_before_lists_the_zone(zone: Zone, listings: list[str]) -> None:
    file = zone.landing.file("a.csv", "1")
    zone.list_files(files=[file])
    assert listings == []
    for memory in (zone.home / "arrivals").iterdir():
        memory.unlink()
    zone.list_files(after=60, files=[])
    assert len(listings) == 1
    zone.received = ""
    zone.list_files(after=60, files=[])
    assert len(listings) == 2


def test_what_is_refused_by_such_a_listing_is_reported_once(zone: Zone, monkeypatch: pytest.MonkeyPatch) -> None:
    zone.list_files(files=[zone.landing.file("refused.csv", "3")])

    def refuse(*_: object) -> Any:
        raise InvalidInput("it is of another format")

    monkeypatch.setattr(identify_arrived, "find_files", refuse)
    result = zone.list_files(after=60, files=[])
    assert [Path(each.path).name for each in result.kept_out] == ["loaded.csv", "refused.csv"]
    assert zone.list_files(after=1, files=[]).kept_out == []


def test_a_named_folder_is_listed(zone: Zone, listings: list[str]) -> None:
    file = zone.landing.file("came/with/its.csv", "1")
    assert zone.list_files(files=[file.parent.parent]).counts == {"waiting": 2}
    assert len(listings) == 1


def test_a_named_manifest_completes_its_folder(tmp_path: Path, listings: list[str]) -> None:
    zone = Zone(tmp_path, manifest="_SUCCESS", settle=1)
    zone.list_files()
    file = zone.landing.file("day/a.csv", "1")
    assert zone.list_files(files=[file]).batches == []
    manifest = zone.landing.file("day/_SUCCESS", "")
    assert zone.names(zone.list_files(after=1, files=[manifest])) == [["a.csv"]]
    assert len(listings) == 1


def test_more_waiting_files_than_are_asked_for_one_by_one_are_listed(zone: Zone, listings: list[str]) -> None:
    """Up to 500 files, one of them listed before, are examined one by one."""
    zone.list_files(files=[zone.landing.file(f"{number}.csv", "1") for number in range(499)])
    assert listings == []
    zone.list_files(files=[zone.landing.file("b.csv", "2")])
    assert len(listings) == 1


async def test_more_files_than_one_listing_plans_follow_at_once(zone: Zone) -> None:
    zone.limits = {"most_waiting": 2}
    for number in range(3):
        zone.landing.file(f"{number}.csv", f"{number + 1}")
    zone.list_files(after=1)
    result = zone.list_files(after=60)
    assert (zone.names(result), result.look_in) == ([["loaded.csv", "0.csv"]], 0)
    result = zone.list_files()
    assert (zone.names(result), result.look_in) == ([["1.csv", "2.csv"]], 0)
    assert (zone.list_files().batches, zone.list_files().look_in) == ([], None)


NAMED = [
    "a.csv", "in/b.csv", "c.csv.tmp", "empty.csv", "link.csv", "day=1/_x=2/d.csv",
    ".hidden", "_x.csv", "_temporary/e.csv", ".h/f.csv", "in/../a.csv", "in//b.csv", "./a.csv", "dangling",
    "missing.csv", "a.csv/b", "null\0", "in/pipe", "", "x" * 5000,
]  # fmt: skip


def test_of_any_names_those_are_returned_that_a_listing_returns(tmp_path: Path) -> None:
    zone = tmp_path / "zone"
    for name in NAMED[:10]:
        (zone / name).parent.mkdir(parents=True, exist_ok=True)
        (zone / name).write_text("" if name == "empty.csv" else "1")
    (zone / "link.csv").unlink()
    (zone / "link.csv").symlink_to(zone / "a.csv")
    (zone / "dangling").symlink_to(zone / "nowhere")
    os.mkfifo(zone / "in" / "pipe")
    (tmp_path / "outside.csv").write_text("1")
    named = [f"{zone}/{name}" for name in NAMED] + [str(tmp_path / "outside.csv"), "/etc/passwd", "a.csv", ""]
    named_alone = [each for name in named for each in find_arriving(str(zone), [name]) or ()]
    assert sorted(named_alone, key=str) == sorted(list_arriving(str(zone)), key=str)
    assert find_arriving(str(zone), [f"{zone}/in"]) is None, "a folder may have files"
    assert find_arriving(str(zone), [str(tmp_path / "outside.csv")]) is None, "another way may lead to the folder"
    assert find_arriving(f"{zone}/*.csv", [f"{zone}/a.csv"]) is find_arriving(f"{zone}/no", [f"{zone}/no/a"]) is None
    assert find_arriving(f"{zone}/a.csv", [f"{zone}/a.csv"]) is None, "a landing zone of one file is listed"


def test_a_store_in_trouble_is_explained_by_the_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    def trouble(*_: object) -> Any:
        raise ServiceUnavailable("the store does not answer")

    monkeypatch.setattr(arriving, "find_object_states", trouble)
    assert find_arriving("s3://landing/x/", ["s3://landing/x/a.csv"]) is None
