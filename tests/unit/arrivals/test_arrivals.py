"""The result of a listing of a landing zone: real files, main's history in memory, and a clock that tests set."""

import os
from pathlib import Path

import pytest

from activities.arrivals.split_batch import SplitBatchActivity
from lakehouse.arrivals.batch_store import BatchStore
from lakehouse.arrivals.zone_files import MarkedFile
from lakehouse.source_files import find_files, identify_input
from sluice.contracts.arrivals import ROLLED_BACK, ArrivedFile, CollectArrivalsInput, ListArrivalsInput
from sluice.contracts.run_request import run_workflow_id
from sluice.contracts.zone_requests import SplitBatchInput
from sluice.pipeline.source import Source
from tests.harness.loading_run import TABLE, roll_back
from tests.harness.memory_zone import TEXT, Zone


async def test_a_file_is_in_one_batch_and_is_known_once_it_is_published(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    first = zone.list_files()
    assert (first.batches, first.counts, first.look_in, first.latest_arrival) == ([], {"waiting": 1}, 60, None)
    assert zone.names(zone.list_files(after=60)) == [["a.csv"]]
    assert zone.list_files(after=600).batches == [] and zone.states()["a.csv"] == ("in a batch", zone.held[0].id)
    await zone.load()
    assert zone.list_files(after=600).batches == []
    assert zone.states() == {"a.csv": ("loaded", "w-r1")}
    zone.landing.file("b.csv", "2")
    assert zone.settled() == [["b.csv"]]


async def test_a_worker_that_lost_its_memory_loads_nothing_twice(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    zone.landing.file("b.csv", "2")
    assert zone.settled() == [["a.csv", "b.csv"]]
    for file in (zone.home / "arrivals").iterdir():
        file.write_bytes(b"no database at all, and longer than a header of one is" * 20)
    assert zone.settled() == [], "they are held"
    await zone.load()
    for file in (zone.home / "arrivals").iterdir():
        file.unlink()
    zone.landing.file("c.csv", "3")
    assert zone.settled() == [["c.csv"]]


def test_a_file_that_is_still_written_is_not_loaded(zone: Zone) -> None:
    file = zone.landing.file("a.csv", "1")
    zone.list_files()
    file.write_text("1\n2")
    assert zone.list_files(after=60).batches == []
    os.utime(file, (5, 5))  # the same size and content with another time
    assert zone.list_files(after=59).batches == []
    assert zone.names(zone.list_files(after=60)) == [["a.csv"]]


def test_hidden_temporary_and_empty_files_are_not_loaded(zone: Zone) -> None:
    for name in (".a.csv", "_b.csv", "c.csv.tmp", "d.csv.PART", "e.csv._COPYING_", ".hidden/f.csv", "_temporary/g.csv"):
        zone.landing.file(name, "1")
    empty = zone.landing.file("h.csv", "")
    assert zone.settled() == []
    assert zone.states() == {
        "h.csv": ("ignored", "it is empty"),
        "c.csv.tmp": ("ignored", "its name ends like that of an unfinished file"),
        "d.csv.PART": ("ignored", "its name ends like that of an unfinished file"),
    }
    empty.write_text("1")
    (zone.landing.path / "c.csv.tmp").rename(zone.landing.path / "c.csv")
    assert zone.settled() == [["c.csv"]], "the other one contains the same"
    assert zone.states()["h.csv"] == zone.states()["c.csv"] == ("in a batch", zone.held[0].id)


async def test_what_main_holds_is_no_arrival_for_a_worker_that_lost_its_memory(zone: Zone) -> None:
    """Otherwise, files would appear to arrive in a landing zone that gets nothing."""
    zone.landing.file("a.csv", "1")
    assert zone.list_files().latest_arrival is None
    assert zone.list_files(after=60).latest_arrival == 1000
    await zone.load()
    for file in (zone.home / "arrivals").iterdir():
        file.unlink()
    zone.list_files(after=86400)
    assert zone.list_files(after=60).latest_arrival is None


async def test_people_see_that_a_run_was_rolled_back_which_run_loads_a_batch_and_what_a_file_waits_for(
    tmp_path: Path,
) -> None:
    zone = Zone(tmp_path)
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    zone.list_files()
    assert zone.states()["a.csv"] == ("loaded", "w-r1")
    roll_back(zone.lake, "back", "r1-".ljust(36, "0"))
    assert zone.states()["a.csv"] == ("loaded", f"w-r1{ROLLED_BACK}")
    file = zone.landing.file("b.csv", "2")
    zone.settled()
    (ref,) = zone.held
    listed = zone.collector.list_arrivals(zone.pipeline, ListArrivalsInput(pipeline=TEXT, held=zone.held))
    (listed_file,) = find_files(Source(path=str(file)))
    assert listed.runs == {ref.id: run_workflow_id("p", identify_input([listed_file]).digest)}
    zone.landing.file("c.csv", "3")
    assert zone.states()["c.csv"] == ("waiting", "it settles for 60 s more")
    zone.now += 100
    assert zone.states()["c.csv"] == ("waiting", "its batch is not closed")


def test_people_see_that_a_folder_has_no_manifest(tmp_path: Path) -> None:
    zone = Zone(tmp_path, manifest="_SUCCESS")
    zone.landing.file("day/a.csv", "1")
    assert zone.states()["a.csv"] == ("waiting", "there is no _SUCCESS in its folder yet")
    zone.landing.file("day/_SUCCESS", "")
    assert zone.states()["a.csv"] == ("waiting", "the next listing collects it")
    zone.now += 1
    zone.landing.file("day/b.csv", "2")
    assert zone.states()["b.csv"] == ("waiting", "it came after _SUCCESS, and settles for 60 s more")


async def test_a_batch_that_others_loaded_is_reported(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    zone.settled()
    (ref,) = zone.held
    assert zone.list_files().loaded == []
    await zone.landing.run("a.csv").load()
    assert zone.list_files().loaded == [ref.id]


async def test_listing_for_a_person_takes_no_alert_from_the_next_listing(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    zone.landing.file("a.csv", "2")
    zone.list_files()
    zone.now += 60
    assert zone.states()["a.csv"][0] == "waiting"
    assert [each.path for each in zone.list_files().kept_out] == [str(zone.landing.path / "a.csv")]


def test_one_listing_makes_no_more_batches_than_the_zone_has_room_for(tmp_path: Path) -> None:
    zone = Zone(tmp_path, batch={"files": 1})
    for number in range(5):
        zone.landing.file(f"{number}.csv", str(number))
    zone.list_files()
    zone.now += 60
    first = zone.collector.collect(zone.pipeline, CollectArrivalsInput(pipeline=TEXT, room=2))
    assert (len(first.batches), first.look_in) == (2, 0)
    full = zone.collector.collect(zone.pipeline, CollectArrivalsInput(pipeline=TEXT, held=first.batches, room=0))
    assert (full.batches, full.look_in) == ([], None)
    asked = ListArrivalsInput(pipeline=TEXT, held=first.batches, has_room=False)
    waiting = [each for each in zone.collector.list_arrivals(zone.pipeline, asked).files if each.status == "waiting"]
    assert len(waiting) == 3 and all("the landing zone is full" in each.detail for each in waiting)
    zone.held = first.batches
    assert len(zone.list_files().batches) == 3


def test_a_file_that_changed_while_it_was_read_is_not_marked(zone: Zone) -> None:
    file = zone.landing.file("a.csv", "1")
    zone.list_files()
    memory = zone.collector.memory("p")
    (listed,) = memory.waiting(10)
    file.write_text("1\n2")
    zone.list_files(after=1)
    memory.mark([MarkedFile(listed.path, listed.changed_at, "loaded", "w-r1")])
    assert [each.path for each in memory.waiting(10)] == [str(file)]


async def test_what_was_loaded_is_asked_again_where_main_lost_it_or_the_tables_are_others(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    before = zone.catalog.head("main")
    zone.settled()
    await zone.load()
    zone.list_files()
    other = zone.pipeline.model_copy(update={"tables": {"n.other": zone.pipeline.tables[TABLE]}})
    stated, zone.pipeline = zone.pipeline, other
    assert zone.names(zone.list_files()) == [["a.csv"]]
    zone.held, zone.pipeline = [], stated
    assert zone.list_files().batches == [] and zone.states()["a.csv"][0] == "loaded"
    zone.catalog.reset_main(before)
    assert zone.names(zone.list_files()) == [["a.csv"]]


async def test_an_answer_about_files_that_are_kept_out_is_repeated_until_it_arrived(tmp_path: Path) -> None:
    zone = Zone(tmp_path)
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    zone.landing.file("a.csv", "2")
    zone.list_files()
    received = zone.received
    assert len(zone.list_files(after=60).kept_out) == 1
    zone.received = received  # the worker ended before Temporal had the answer
    assert len(zone.list_files(after=5).kept_out) == 1
    assert zone.list_files(after=5).kept_out == []


@pytest.mark.parametrize("files", [2, 3, 2000])
def test_the_halves_of_a_batch_have_each_file_once(tmp_path: Path, files: int) -> None:
    batches = BatchStore((tmp_path / "lake").as_uri(), {})
    listed = [ArrivedFile(path=f"/in/{number}", size=1, identity=f"sha256:{number}") for number in range(files)]
    given = SplitBatchInput(name="p", ref=batches.write("p", listed))
    first, second = SplitBatchActivity(batches).split_batch(given).halves
    assert batches.read(first) + batches.read(second) == listed
    assert 0 <= first.files - second.files <= 1
    assert SplitBatchActivity(batches).split_batch(given).halves == [first, second], "repeated"


def test_a_manifest_closes_the_batch_of_its_folder(tmp_path: Path) -> None:
    zone = Zone(tmp_path, manifest="_SUCCESS")
    zone.landing.file("day1/a.csv", "1")
    zone.landing.file("day2/b.csv", "2")
    assert zone.list_files(after=6000).batches == []
    zone.landing.file("day1/_SUCCESS", "")
    assert zone.names(zone.list_files()) == [["a.csv"]]


async def test_a_file_that_comes_after_its_manifest_settles_and_manifests_are_not_loaded(tmp_path: Path) -> None:
    zone = Zone(tmp_path, manifest="done.txt")
    zone.landing.file("day/a.csv", "1")
    zone.landing.file("day/done.txt", "a.csv")
    assert zone.names(zone.list_files()) == [["a.csv"]]
    await zone.load()
    zone.landing.file("day/late.csv", "2")
    late = zone.list_files(after=1)
    assert (late.batches, late.look_in) == ([], 60)
    assert zone.names(zone.list_files(after=60)) == [["late.csv"]]


def test_folders_without_their_manifest_hold_up_no_other(tmp_path: Path) -> None:
    zone = Zone(tmp_path, manifest="_SUCCESS")
    zone.limits = {"most_waiting": 2}
    for number in range(3):
        zone.landing.file(f"never/{number}.csv", str(number))
    zone.list_files()
    zone.landing.file("day/a.csv", "9")
    zone.landing.file("day/_SUCCESS", "")
    assert zone.names(zone.list_files(after=600)) == [["a.csv"]]


def test_a_file_that_vanishes_is_forgotten(zone: Zone) -> None:
    file = zone.landing.file("a.csv", "1")
    zone.list_files()
    file.unlink()
    assert zone.list_files(after=60).batches == [] and zone.states() == {}


def test_a_listing_reports_its_progress_and_stops_when_nobody_waits(zone: Zone) -> None:
    for number in range(2001):
        zone.landing.file(f"{number}.csv", str(number))
    reported: list[str] = []
    given = CollectArrivalsInput(pipeline=TEXT)
    zone.collector.collect(zone.pipeline, given, reported.append)
    assert reported == ["listed 1,000 files", "listed 2,000 files"]

    def stop(_: str) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        zone.collector.collect(zone.pipeline, given, stop)
    assert zone.list_files().counts == {"waiting": 2001}
