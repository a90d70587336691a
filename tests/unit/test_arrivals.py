"""The result of a look at a landing zone: real files, main's history in memory, and a clock that tests set."""

import os
import re
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from activities.arrivals.split_batch import SplitBatchActivity
from lakehouse.arrivals import collector, identify_arrived
from lakehouse.arrivals.batch_store import BatchStore
from lakehouse.arrivals.zone_files import MarkedFile
from lakehouse.source_files import find_files, identify_input
from lakehouse.source_files.arriving import ArrivingFile
from sluice.contracts.arrivals import (
    ROLLED_BACK,
    ArrivedFile,
    CollectArrivalsInput,
    ListArrivalsInput,
    SplitBatchInput,
)
from sluice.contracts.run import InputFile, run_workflow_id
from sluice.errors import InvalidInput, ManifestUnreadable, ServiceUnavailable
from sluice.pipeline.scope import LoadScope
from sluice.pipeline.source import Source
from tests.harness.loading_run import TABLE, roll_back
from tests.harness.memory_zone import TEXT, Zone

VARIABLE_NUMBER = 9
"""The number of `SQLITE_LIMIT_VARIABLE_NUMBER` in sqlite3.h."""


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    return Zone(tmp_path)


async def test_a_file_is_in_one_batch_and_is_known_once_it_is_published(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    first = zone.look()
    assert (first.batches, first.counts, first.look_in, first.latest_arrival) == ([], {"waiting": 1}, 60, None)
    assert zone.names(zone.look(after=60)) == [["a.csv"]]
    assert zone.look(after=600).batches == [] and zone.states()["a.csv"] == ("in a batch", zone.held[0].id)
    await zone.load()
    assert zone.look(after=600).batches == []
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
    zone.look()
    file.write_text("1\n2")
    assert zone.look(after=60).batches == []
    os.utime(file, (5, 5))  # the same size and content with another time
    assert zone.look(after=59).batches == []
    assert zone.names(zone.look(after=60)) == [["a.csv"]]


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


@pytest.mark.parametrize("becomes_of_it", ["it is overwritten", "it is removed", "it is loaded"])
async def test_a_copy_of_a_file_is_loaded_if_the_file_is_not(zone: Zone, becomes_of_it: str) -> None:
    file = zone.landing.file("a.csv", "1")
    zone.landing.file("b.csv", "1")
    assert zone.settled() == [["a.csv"]]
    if becomes_of_it == "it is loaded":
        await zone.load()
        assert zone.look().batches == []
        assert zone.states()["b.csv"] == ("loaded", "w-r1")
        return
    zone.held = []  # its run ended because the file changed meanwhile
    if becomes_of_it == "it is removed":
        file.unlink()
        assert zone.names(zone.look()) == [["b.csv"]]
        return
    file.write_text("2")
    zone.look()
    assert zone.names(zone.look(after=60)) == [["b.csv", "a.csv"]]


async def test_the_same_content_under_another_name_is_not_loaded_again(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    zone.landing.file("copy.csv", "1")
    assert zone.settled() == []
    assert zone.states()["copy.csv"] == ("loaded", "w-r1")


@pytest.mark.parametrize(("overwritten", "reported"), [("ignore", 0), ("alert", 1), ("load", 0)])
async def test_a_file_that_comes_again_with_other_content(tmp_path: Path, overwritten: str, reported: int) -> None:
    zone = Zone(tmp_path, overwritten=overwritten)
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    zone.landing.file("a.csv", "2")
    zone.look()
    result = zone.look(after=60)
    assert zone.names(result) == ([["a.csv"]] if overwritten == "load" else [])
    reason = "overwritten: run w-r1 loaded this path with other content"
    assert [each.reason for each in result.kept_out] == [reason] * reported
    if overwritten != "load":
        assert zone.states()["a.csv"] == ("ignored", reason)
    assert zone.look(after=600).kept_out == [], "people are told once"


async def test_a_file_in_the_place_of_one_that_was_rolled_back_is_loaded(zone: Zone) -> None:
    """Main has nothing of this path, so the file was not overwritten."""
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    roll_back(zone.lake, "back", "r1-".ljust(36, "0"))
    zone.landing.file("a.csv", "2")
    assert zone.settled() == [["a.csv"]]


async def test_what_a_changed_pipeline_accepts_is_loaded(tmp_path: Path) -> None:
    zone = Zone(tmp_path, overwritten="ignore")
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    zone.landing.file("a.csv", "2")
    assert zone.settled() == [] and zone.states()["a.csv"][0] == "ignored"
    source = zone.pipeline.write.source
    assert source and zone.pipeline.arrival
    write = zone.pipeline.write.model_copy(update={"source": source.model_copy(update={"format": "parquet"})})
    loads = zone.pipeline.arrival.model_copy(update={"overwritten": "load"})
    zone.pipeline = zone.pipeline.model_copy(update={"write": write, "arrival": loads})
    refused = zone.look()
    assert refused.batches == [] and [Path(each.path).name for each in refused.kept_out] == ["a.csv"]
    assert zone.look().kept_out == [], "people are told once"
    assert zone.states()["a.csv"][0] == "refused"
    write = zone.pipeline.write.model_copy(update={"source": source})
    zone.pipeline = zone.pipeline.model_copy(update={"write": write})
    assert zone.names(zone.look()) == [["a.csv"]]


async def test_what_main_holds_is_no_arrival_for_a_worker_that_lost_its_memory(zone: Zone) -> None:
    """Otherwise, files would appear to arrive in a landing zone that gets nothing."""
    zone.landing.file("a.csv", "1")
    assert zone.look().latest_arrival is None
    assert zone.look(after=60).latest_arrival == 1000
    await zone.load()
    for file in (zone.home / "arrivals").iterdir():
        file.unlink()
    zone.look(after=86400)
    assert zone.look(after=60).latest_arrival is None


async def test_a_file_whose_run_was_rolled_back_is_left_to_people(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    roll_back(zone.lake, "back", "r1-".ljust(36, "0"))
    for file in (zone.home / "arrivals").iterdir():
        file.unlink()
    assert zone.settled() == []
    assert zone.states()["a.csv"] == ("loaded", "w-r1 (rolled back)")


async def test_what_was_rolled_back_is_loaded_from_another_path(zone: Zone) -> None:
    """An earlier version did not load it: it recognised the content and ignored the path."""
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    zone.look()
    roll_back(zone.lake, "back", "r1-".ljust(36, "0"))
    zone.landing.file("corrected.csv", "1")
    assert zone.settled() == [["corrected.csv"]]
    await zone.load()
    zone.look()
    assert zone.states()["a.csv"] == zone.states()["corrected.csv"] == ("loaded", "w-r2")


async def test_content_that_was_rolled_back_and_replaced_is_loaded_when_it_is_sent_again(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    roll_back(zone.lake, "back", "r1-".ljust(36, "0"))
    zone.landing.file("a.csv", "2")
    zone.settled()
    await zone.load()
    zone.pipeline = zone.pipeline.model_copy(
        update={"arrival": zone.pipeline.arrival and zone.pipeline.arrival.model_copy(update={"overwritten": "load"})}
    )
    zone.landing.file("a.csv", "1")
    assert zone.settled() == [["a.csv"]]


def merging(zone: Zone) -> None:
    """Change the pipeline of a zone to merge by a key."""
    write = zone.pipeline.write.model_copy(update={"mode": "merge", "keys": ["id"]})
    zone.pipeline = zone.pipeline.model_copy(update={"write": write})


async def load_in_order(zone: Zone) -> None:
    for ref in zone.held:
        paths = [file.path for file in zone.collector.batches.read(ref)]
        await zone.landing.run(*paths, order_matters=True).load()
    zone.held = []


@pytest.mark.parametrize("merges", [True, False])
async def test_content_that_comes_again_after_another_is_loaded_where_the_order_matters(
    tmp_path: Path, merges: bool
) -> None:
    """A price file was sent as 10, 20, 10. An earlier version reported the third as `loaded`, and main kept 20."""
    zone = Zone(tmp_path, overwritten="load")
    if merges:
        merging(zone)
    for price in ("10", "20"):
        zone.landing.file("prices.csv", price)
        assert zone.settled() == [["prices.csv"]]
        await load_in_order(zone)
    zone.landing.file("prices.csv", "10")
    assert zone.settled() == ([["prices.csv"]] if merges else [])
    if merges:
        assert zone.look().loaded == [], "main contains 20"
        await load_in_order(zone)
    zone.look()
    assert zone.states()["prices.csv"] == ("loaded", "w-r3" if merges else "w-r1")


async def test_content_whose_path_a_batch_is_about_to_replace_is_judged_after_it(tmp_path: Path) -> None:
    zone = Zone(tmp_path, overwritten="load")
    merging(zone)
    zone.landing.file("prices.csv", "10")
    zone.settled()
    await load_in_order(zone)
    file = zone.landing.file("prices.csv", "20")
    zone.settled()
    branch, selected = await (run := zone.landing.run(str(file), order_matters=True)).write()
    zone.landing.file("prices.csv", "10")
    assert zone.settled() == [] and "with other content" in zone.states()["prices.csv"][1]
    assert run.publish(branch, selected).merged
    zone.held = []
    assert zone.names(zone.look()) == [["prices.csv"]]


async def test_a_file_of_which_main_holds_a_partition_is_refused(zone: Zone) -> None:
    file = zone.landing.file("a.csv", "1")
    await zone.landing.run(str(file), scope=LoadScope(content="2018-01")).load()
    assert zone.settled() == []
    status, reason = zone.states()["a.csv"]
    assert status == "refused" and "for 2018-01 into t.x" in reason


async def test_people_see_that_a_run_was_rolled_back_which_run_loads_a_batch_and_what_a_file_waits_for(
    tmp_path: Path,
) -> None:
    zone = Zone(tmp_path)
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    zone.look()
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
    assert zone.look().loaded == []
    await zone.landing.run("a.csv").load()
    assert zone.look().loaded == [ref.id]


def test_one_file_that_cannot_be_loaded_stops_no_other_one(tmp_path: Path) -> None:
    zone = Zone(tmp_path)
    source = zone.pipeline.write.source
    assert source
    write = zone.pipeline.write.model_copy(update={"source": source.model_copy(update={"format": "parquet"})})
    zone.pipeline = zone.pipeline.model_copy(update={"write": write})
    zone.landing.file("a.parquet", "PAR1, cut off")
    zone.landing.file("b.parquet", "PAR1 and enough bytes PAR1")
    assert zone.settled() == [["b.parquet"]]
    status, why = zone.states()["a.parquet"]
    assert status == "refused" and "it is truncated" in why
    zone.landing.file("a.parquet", "PAR1 now it is whole, too PAR1")
    assert zone.settled() == [["a.parquet"]]


async def test_listing_for_a_person_takes_no_alert_from_the_next_look(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    zone.landing.file("a.csv", "2")
    zone.look()
    zone.now += 60
    assert zone.states()["a.csv"][0] == "waiting"
    assert [each.path for each in zone.look().kept_out] == [str(zone.landing.path / "a.csv")]


def test_one_look_makes_no_more_batches_than_the_zone_has_room_for(tmp_path: Path) -> None:
    zone = Zone(tmp_path, batch={"files": 1})
    for number in range(5):
        zone.landing.file(f"{number}.csv", str(number))
    zone.look()
    zone.now += 60
    first = zone.collector.collect(zone.pipeline, CollectArrivalsInput(pipeline=TEXT, room=2))
    assert (len(first.batches), first.look_in) == (2, 0)
    full = zone.collector.collect(zone.pipeline, CollectArrivalsInput(pipeline=TEXT, held=first.batches, room=0))
    assert (full.batches, full.look_in) == ([], None)
    asked = ListArrivalsInput(pipeline=TEXT, held=first.batches, has_room=False)
    waiting = [each for each in zone.collector.list_arrivals(zone.pipeline, asked).files if each.status == "waiting"]
    assert len(waiting) == 3 and all("the landing zone is full" in each.detail for each in waiting)
    zone.held = first.batches
    assert len(zone.look().batches) == 3


def test_a_file_that_changed_while_it_was_read_is_not_marked(zone: Zone) -> None:
    file = zone.landing.file("a.csv", "1")
    zone.look()
    memory = zone.collector.memory("p")
    (listed,) = memory.waiting(10)
    file.write_text("1\n2")
    zone.look(after=1)
    memory.mark([MarkedFile(listed.path, listed.changed_at, "loaded", "w-r1")])
    assert [each.path for each in memory.waiting(10)] == [str(file)]


def test_a_name_that_is_not_in_utf_8_is_shown_and_stops_no_file(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    (zone.landing.path / os.fsdecode(b"caf\xe9.csv")).write_text("2")
    assert zone.settled() == [["a.csv"]]
    assert zone.states()["caf\\xe9.csv"] == ("ignored", "its name is not in UTF-8: rename it")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("10:00.csv", "Spark cannot open a file with a colon in its name: rename it, for example to '10-00.csv'"),
        ("day=/a.csv", "the folder 'day=' is read as a column, but has no value: rename it"),
        ("=x/a.csv", "the folder '=x' is read as a column, but has no name: rename it, for example to x"),
    ],
)
def test_a_name_that_spark_cannot_open_is_refused_alone(zone: Zone, name: str, reason: str) -> None:
    odd = zone.landing.file(name, "1")
    zone.landing.file("b.csv", "2")
    zone.look()
    settled = zone.look(after=60)
    assert zone.names(settled) == [["b.csv"]]
    assert [(file.path, reason in file.reason) for file in settled.kept_out] == [(str(odd), True)]
    with pytest.raises(InvalidInput, match=re.escape(reason)):
        find_files(Source(path=str(zone.landing.path), format="csv"))


def test_folders_may_lie_deep(zone: Zone) -> None:
    folder = zone.landing.path
    for _ in range(500):
        folder = folder / "d"
        folder.mkdir()
    (folder / "a.csv").write_text("1")
    assert zone.settled() == [["a.csv"]]


def test_a_file_that_was_refused_is_tried_again_after_a_while(zone: Zone, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store may have refused it until somebody got a permission."""
    zone.landing.file("a.csv", "1")
    zone.look()

    def refuse(*_: Any) -> list[InputFile]:
        raise InvalidInput("a.csv cannot be read: AccessDenied")

    with monkeypatch.context() as patched:
        patched.setattr(identify_arrived, "find_files", refuse)
        assert len(zone.look(after=60).kept_out) == 1
        assert zone.look(after=700).kept_out == [], "people are told once"
    assert zone.look(after=5).batches == []
    assert zone.names(zone.look(after=700)) == [["a.csv"]]


async def test_what_was_loaded_is_asked_again_where_main_lost_it_or_the_tables_are_others(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    before = zone.catalog.head("main")
    zone.settled()
    await zone.load()
    zone.look()
    other = zone.pipeline.model_copy(update={"tables": {"n.other": zone.pipeline.tables[TABLE]}})
    stated, zone.pipeline = zone.pipeline, other
    assert zone.names(zone.look()) == [["a.csv"]]
    zone.held, zone.pipeline = [], stated
    assert zone.look().batches == [] and zone.states()["a.csv"][0] == "loaded"
    zone.catalog.reset_main(before)
    assert zone.names(zone.look()) == [["a.csv"]]


async def test_an_answer_about_files_that_are_kept_out_is_repeated_until_it_arrived(tmp_path: Path) -> None:
    zone = Zone(tmp_path)
    zone.landing.file("a.csv", "1")
    zone.settled()
    await zone.load()
    zone.landing.file("a.csv", "2")
    zone.look()
    received = zone.received
    assert len(zone.look(after=60).kept_out) == 1
    zone.received = received  # the worker ended before Temporal had the answer
    assert len(zone.look(after=5).kept_out) == 1
    assert zone.look(after=5).kept_out == []


def test_a_page_of_the_memory_that_is_damaged_stops_no_later_look(zone: Zone) -> None:
    for number in range(300):
        zone.landing.file(f"{number}.csv", str(number))
    zone.look()
    (file,) = (zone.home / "arrivals").iterdir()
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    with pytest.raises(ServiceUnavailable, match="was damaged; Sluice rebuilds it"):
        zone.look()
    assert zone.look().counts == {"waiting": 300}


@pytest.mark.parametrize("files", [2, 3, 2000])
def test_the_halves_of_a_batch_have_each_file_once(tmp_path: Path, files: int) -> None:
    batches = BatchStore((tmp_path / "lake").as_uri(), {})
    listed = [ArrivedFile(path=f"/in/{number}", size=1, identity=f"sha256:{number}") for number in range(files)]
    given = SplitBatchInput(name="p", ref=batches.write("p", listed))
    first, second = SplitBatchActivity(batches).split_batch(given).halves
    assert batches.read(first) + batches.read(second) == listed
    assert 0 <= first.files - second.files <= 1
    assert SplitBatchActivity(batches).split_batch(given).halves == [first, second], "repeated"


def test_a_link_that_leads_nowhere_stops_no_file(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    (zone.landing.path / "gone.csv").symlink_to("nowhere")
    assert zone.settled() == [["a.csv"]]


def test_a_manifest_closes_the_batch_of_its_folder(tmp_path: Path) -> None:
    zone = Zone(tmp_path, manifest="_SUCCESS")
    zone.landing.file("day1/a.csv", "1")
    zone.landing.file("day2/b.csv", "2")
    assert zone.look(after=6000).batches == []
    zone.landing.file("day1/_SUCCESS", "")
    assert zone.names(zone.look()) == [["a.csv"]]


async def test_a_file_that_comes_after_its_manifest_settles_and_manifests_are_not_loaded(tmp_path: Path) -> None:
    zone = Zone(tmp_path, manifest="done.txt")
    zone.landing.file("day/a.csv", "1")
    zone.landing.file("day/done.txt", "a.csv")
    assert zone.names(zone.look()) == [["a.csv"]]
    await zone.load()
    zone.landing.file("day/late.csv", "2")
    late = zone.look(after=1)
    assert (late.batches, late.look_in) == ([], 60)
    assert zone.names(zone.look(after=60)) == [["late.csv"]]


def test_folders_without_their_manifest_hold_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_MOST_WAITING", 2)
    zone = Zone(tmp_path, manifest="_SUCCESS")
    for number in range(3):
        zone.landing.file(f"never/{number}.csv", str(number))
    zone.look()
    zone.landing.file("day/a.csv", "9")
    zone.landing.file("day/_SUCCESS", "")
    assert zone.names(zone.look(after=600)) == [["a.csv"]]


def test_a_file_that_vanishes_is_forgotten(zone: Zone) -> None:
    file = zone.landing.file("a.csv", "1")
    zone.look()
    file.unlink()
    assert zone.look(after=60).batches == [] and zone.states() == {}


def test_a_lost_or_altered_batch_stops_the_zone(zone: Zone) -> None:
    zone.landing.file("a.csv", "1")
    zone.settled()
    path = Path(zone.held[0].location.removeprefix("file://"))
    path.write_text("[1, 2")
    with pytest.raises(ManifestUnreadable, match="was altered"):
        zone.look()
    path.unlink()
    with pytest.raises(ManifestUnreadable, match="is missing"):
        zone.look()


def test_a_folder_that_is_not_there_is_a_problem_and_a_pattern_that_matches_nothing_is_none(tmp_path: Path) -> None:
    zone = Zone(tmp_path)
    zone.landing.path.rmdir()
    with pytest.raises(InvalidInput, match="there is no folder"):
        zone.look()
    assert Zone(tmp_path, **{"from": f"{tmp_path}/land*/*.csv"}).look().batches == []


def test_names_that_could_be_patterns_are_files_like_others(zone: Zone) -> None:
    for name in ("a[1].csv", "b*.csv", "c d.csv", "é.csv"):
        zone.landing.file(name, name)
    assert sorted(zone.settled()[0]) == sorted(["a[1].csv", "b*.csv", "c d.csv", "é.csv"])


def test_a_look_reports_how_far_it_is_and_stops_when_nobody_waits(zone: Zone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_REPORTED_EVERY", 2)
    for number in range(5):
        zone.landing.file(f"{number}.csv", str(number))
    reported: list[str] = []
    given = CollectArrivalsInput(pipeline=TEXT)
    zone.collector.collect(zone.pipeline, given, reported.append)
    assert reported == ["listed 2 files", "listed 4 files"]

    def stop(_: str) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        zone.collector.collect(zone.pipeline, given, stop)
    assert zone.look().counts == {"waiting": 5}


@pytest.mark.parametrize("pattern", ["", "/*"])
def test_a_link_to_itself_stops_no_file(tmp_path: Path, pattern: str) -> None:
    zone = Zone(tmp_path, **{"from": f"{tmp_path}/landing{pattern}"})
    zone.landing.file("a.csv", "1")
    (zone.landing.path / "loop").symlink_to("loop")
    assert zone.settled() == [["a.csv"]]


def test_a_sqlite_that_takes_few_parameters_is_enough(zone: Zone, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite before 3.32 accepts 999 parameters."""
    if sys.version_info < (3, 11):
        pytest.skip("Python cannot lower the limit")
    connect = sqlite3.connect

    def limited(*args: Any, **more: Any) -> sqlite3.Connection:
        database: sqlite3.Connection = connect(*args, **more)
        database.setlimit(VARIABLE_NUMBER, 999)
        return database

    monkeypatch.setattr(sqlite3, "connect", limited)
    memory = zone.collector.memory("p")
    memory.record_listing([ArrivingFile(f"/in/{number}", 1, "1") for number in range(1500)], 5.0)
    assert len(memory.waiting(2000)) == 1500
    for number, batch in ((1, "held"), (2, "gone")):
        memory.mark([MarkedFile(f"/in/{number}", 5.0, "in a batch", batch)])
    memory.release_batches(["held", *map(str, range(1500))], [], [])
    assert memory.counts() == {"in a batch": 1, "waiting": 1499}
