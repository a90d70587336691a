"""A landing zone in `mode: merge`: an older file never replaces the rows of a younger one without a decision."""

import os
from pathlib import Path
from typing import Any

import pytest

from activities.run import prepare_run
from lakehouse.arrivals import identify_arrived
from runtime.arrivals.landing_zones import command_batch, split_batch
from sluice.contracts.zone_requests import BatchCommand, SplitBatch
from sluice.publishing.commit_properties import RUN_ID
from tests.harness.merge_zone import MakeZone
from tests.harness.unreadable_files import make_unreadable
from tests.harness.zone_driver import SETTLE

pytestmark = pytest.mark.usefixtures("immediate_listings")


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    return make_unreadable(monkeypatch)


@pytest.mark.parametrize("after", ["keep", "move"])
def test_a_file_sent_again_after_another_waits_for_a_person(make_zone: MakeZone, tmp_path: Path, after: str) -> None:
    (tmp_path / "done").mkdir()
    options = {"after": "move", "move_to": str(tmp_path / "done")} if after == "move" else {}
    zone = make_zone(f"week{after}", overwritten="load", **options)
    for name, value in (("mon.csv", 10), ("tue.csv", 20), ("mon.csv", 10)):
        zone.send(name, value)
        zone.settle()
    assert zone.value() == 20
    assert (zone.driver.zone / "mon.csv").exists(), "main has older content of it: it is not done"
    assert not zone.load("mon.csv")
    assert zone.load("mon.csv", over_younger=True)
    assert zone.value() == 10
    zone.settle()
    zone.settle()
    assert zone.value() == 10
    assert (zone.driver.zone / "mon.csv").exists() == (after == "keep")
    assert zone.batches() == []


def test_copies_hide_no_newer_delivery(make_zone: MakeZone) -> None:
    zone = make_zone("mirror", overwritten="load")
    for value in (10, 20):
        zone.send("a.csv", value)
        zone.send("b.csv", value)
        zone.settle()
    zone.send("b.csv", 10)
    zone.settle()
    assert zone.value() == 20
    assert zone.load("b.csv", over_younger=True)
    assert zone.value() == 10


@pytest.mark.parametrize("lists_files", [False, True])
def test_a_copy_that_follows_another_delivery_in_the_same_listing_waits(
    make_zone: MakeZone, monkeypatch: pytest.MonkeyPatch, lists_files: bool
) -> None:
    """Each of the two files gets a batch of its own, and is read by itself."""
    monkeypatch.setattr(identify_arrived, "_AT_ONCE", 1)
    zone = make_zone(f"burst{lists_files}", batch={"files": 1})
    zone.send("d1.csv", 10)
    zone.settle()
    zone.send("d2.csv", 20)
    zone.send("d3.csv", 10)
    if lists_files:
        zone.list_files()
        zone.memory.clock.now += SETTLE
        zone.memory.run(zone.driver.show_files())
    zone.settle()
    zone.settle()
    assert zone.value() == 20
    assert zone.memory.run(zone.driver.status()).counts == {"loaded": 2, "refused": 1}, "a person decides"
    assert zone.load("d3.csv", over_younger=True)
    assert zone.value() == 10


def test_files_that_are_all_written_again_count_as_loaded(make_zone: MakeZone) -> None:
    zone = make_zone("rsync", batch={"files": 1})
    for value in (10, 20):
        zone.send(f"{value}.csv", value)
        zone.settle()
    for path in zone.driver.zone.iterdir():
        path.touch()
    zone.settle()
    assert zone.memory.run(zone.driver.status()).counts == {"loaded": 2}


def test_a_file_that_changes_under_its_run_keeps_the_order_of_its_batch(
    make_zone: MakeZone, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone = make_zone("changing", overwritten="load", batch={"files": 2})
    inspect, changed = prepare_run.PrepareRunActivity._inspect, list[int]()

    def change_first(self: Any, input: Any, progress: Any) -> Any:
        if any(each.endswith("p.csv") for each in input.files or ()) and not changed:
            changed.append(1)
            zone.send("p.csv", 2, key=5)
        return inspect(self, input, progress)

    monkeypatch.setattr(prepare_run.PrepareRunActivity, "_inspect", change_first)
    for name, value, key in (("p.csv", 1, 5), ("x.csv", 10, 1), ("q.csv", 20, 1)):
        zone.send(name, value, key)
        zone.list_files(1)
    zone.list_files(SETTLE)
    zone.settle()
    assert changed
    assert (zone.value(), zone.value(key=5)) == (20, 2)
    assert zone.batches() == []


def test_a_refused_batch_of_a_paused_zone_comes_back_before_younger_ones(
    make_zone: MakeZone, unreadable: set[str]
) -> None:
    zone = make_zone("paused", batch={"files": 1})
    unreadable.add("run x.csv")
    for name, value in (("x.csv", 10), ("q.csv", 20)):
        zone.send(name, value)
        zone.settle()
    unreadable.clear()
    zone.decide("retry", zone.batches()[0])
    zone.settle()
    assert [commit.message.count("Publish") for commit in zone.driver.commits()].count(1) == 2
    assert zone.value() == 20
    assert zone.batches() == []


def test_a_refused_batch_that_comes_back_after_a_younger_one_waits_for_a_person(
    make_zone: MakeZone, unreadable: set[str]
) -> None:
    zone = make_zone("refused", batch={"files": 1})
    refused = zone.refuse_then_load(unreadable)
    zone.decide("retry", refused)
    assert zone.value() == 20
    zone.decide("retry", refused, over_younger=True)
    zone.settle()
    assert zone.value() == 10
    assert zone.batches() == []


def test_a_file_that_becomes_readable_after_a_younger_one_waits_for_a_person(
    make_zone: MakeZone, unreadable: set[str]
) -> None:
    zone = make_zone("readable")
    unreadable.add("x.csv")
    zone.send("x.csv", 10)
    zone.settle()
    zone.send("q.csv", 20)
    zone.settle()
    unreadable.clear()
    zone.list_files(700)
    zone.settle()
    assert zone.value() == 20
    (kept_out,) = zone.batches()
    assert (kept_out.state, "the younger batch" in kept_out.reason) == ("kept out", True)
    zone.decide("retry", kept_out)
    assert zone.value() == 20
    zone.decide("retry", kept_out, over_younger=True)
    assert zone.value() == 10


def test_ignored_content_waits_for_a_person_when_its_zone_loads_overwritten_files(make_zone: MakeZone) -> None:
    zone = make_zone("redeployed", overwritten="ignore")
    for name, value in (("p.csv", 10), ("p.csv", 11), ("q.csv", 20)):
        zone.send(name, value)
        zone.settle()
    zone.driver.options = {"overwritten": "load"}
    zone.memory.run(zone.driver.deploy_again())
    zone.settle()
    assert zone.value() == 20
    assert [batch.state for batch in zone.batches()] == ["kept out"]


@pytest.mark.parametrize("is_decided", [False, True])
def test_a_batch_that_comes_while_a_younger_one_runs_waits_for_a_person(
    make_zone: MakeZone, unreadable: set[str], is_decided: bool
) -> None:
    zone = make_zone(f"running{int(is_decided)}", batch={"files": 1})
    zone.driver.needs_approval = True
    zone.memory.run(zone.driver.deploy_again())
    if not is_decided:
        unreadable.add("x.csv")
    zone.send("x.csv", 10)
    zone.settle()
    if is_decided:
        zone.approve(approve=False)
        zone.resume()
    zone.send("q.csv", 20)
    zone.settle()
    unreadable.clear()
    zone.list_files(700)
    if is_decided:
        zone.decide("retry", zone.batches()[0])
    zone.settle()
    zone.approve()
    zone.approve()
    assert zone.value() == 20
    assert [(batch.state, "younger batch" in batch.reason) for batch in zone.batches()] == [("kept out", True)]


def test_a_decision_for_files_that_are_gone_permits_nothing_later(make_zone: MakeZone, unreadable: set[str]) -> None:
    zone = make_zone("permit", batch={"files": 1})
    refused = zone.refuse_then_load(unreadable)
    (zone.driver.zone / "x.csv").unlink()
    zone.decide("retry", refused, over_younger=True)
    zone.settle()
    unreadable.add("x.csv")
    for name, value in (("x.csv", 30), ("r.csv", 40)):
        zone.send(name, value)
        zone.settle()
    unreadable.clear()
    zone.list_files(700)
    zone.settle()
    assert zone.value() == 40


def test_all_files_are_loaded_in_their_order_after_their_table_was_dropped(make_zone: MakeZone) -> None:
    zone = make_zone("dropped", batch={"files": 1})
    for name, value in (("b.csv", 10), ("a.csv", 20)):
        zone.send(name, value)
        zone.settle()
    zone.memory.lake.recreate(zone.driver.table)
    zone.settle()
    zone.settle()
    assert zone.value() == 20
    assert zone.batches() == []


def test_files_go_on_when_the_batch_before_them_is_kept_out(make_zone: MakeZone) -> None:
    zone = make_zone("rejected", overwritten="load", batch={"files": 1})
    zone.driver.needs_approval = True
    zone.memory.run(zone.driver.deploy_again())
    for name, value, key in (("p.csv", 10, 1), ("p.csv", 11, 1), ("q.csv", 20, 2)):
        zone.send(name, value, key)
        zone.settle()
    listings = zone.driver.clock.listings[zone.driver.name]
    zone.approve(approve=False)
    assert zone.driver.clock.listings[zone.driver.name] > listings
    assert [batch.state for batch in zone.batches()] == ["kept out", "waiting"]


def test_a_file_loaded_by_name_overtakes_the_older_one_that_waits(make_zone: MakeZone) -> None:
    zone = make_zone("named")
    zone.send("p.csv", 10)
    zone.list_files()
    zone.send("q.csv", 20)
    zone.list_files(5)
    zone.send("r.csv", 7, key=7)
    zone.list_files(61)
    assert zone.load("q.csv")
    zone.settle()
    assert (zone.value(), zone.value(key=7)) == (20, 7)
    assert [batch.state for batch in zone.batches()] == ["kept out"]


def test_files_between_two_listings_are_in_the_order_of_their_deliveries(make_zone: MakeZone) -> None:
    zone = make_zone("between", batch={"files": 1})
    for name, value, written_at in (("z.csv", 10, 1_000_000), ("a.csv", 20, 1_000_200), ("b.csv", 30, 1_000_190)):
        zone.send(name, value)
        os.utime(zone.driver.zone / name, (written_at, written_at))
    zone.settle()
    assert zone.value() == 30, "a and b are one delivery, and b is the last of its names"


def test_a_younger_file_waits_behind_one_that_waits_for_the_run_of_its_path(make_zone: MakeZone) -> None:
    zone = make_zone("behind", overwritten="load", batch={"files": 1})
    zone.driver.needs_approval = True
    zone.memory.run(zone.driver.deploy_again())
    zone.send("p.csv", 10)
    zone.settle()
    zone.send("p.csv", 11)
    zone.settle()
    zone.send("q.csv", 20)
    zone.settle()
    assert len(zone.batches()) == 1, "q waits behind the new content of p"
    for _ in range(3):
        zone.memory.run(zone.driver.decide_batch(approve=True))
        zone.settle()
    assert zone.value() == 20
    assert zone.batches() == []


def test_a_retried_batch_waits_behind_an_older_one_that_came_later(make_zone: MakeZone, unreadable: set[str]) -> None:
    zone = make_zone("retried", batch={"files": 1})
    zone.driver.needs_approval = True
    zone.memory.run(zone.driver.deploy_again())
    unreadable.add("x.csv")
    for name, value in (("x.csv", 10), ("q.csv", 20)):
        zone.send(name, value)
        zone.settle()
    zone.approve(approve=False)
    unreadable.clear()
    zone.list_files(700)
    zone.settle()
    rejected, older = zone.batches()
    assert (rejected.state, older.state) == ("kept out", "waiting")
    zone.decide("retry", rejected)
    zone.approve()
    assert zone.value() == 10
    zone.approve()
    assert zone.value() == 20
    assert zone.batches() == []


def test_an_older_file_that_a_person_names_is_loaded_before_the_batches_that_wait(make_zone: MakeZone) -> None:
    zone = make_zone("namedolder", batch={"files": 1})
    zone.send("o.csv", 10)
    zone.settle()
    zone.memory.run(zone.driver.roll_back(zone.driver.commits()[0].properties[RUN_ID]))
    zone.resume(paused=True)
    zone.send("q.csv", 20)
    zone.settle()
    assert zone.load("o.csv")
    assert [batch.state for batch in zone.batches()] == ["waiting", "waiting"]
    zone.resume()
    zone.settle()
    assert zone.value() == 20
    assert zone.batches() == []


def test_a_file_that_became_readable_late_and_is_named_needs_over_younger(
    make_zone: MakeZone, unreadable: set[str]
) -> None:
    zone = make_zone("latenamed")
    unreadable.add("x.csv")
    for name, value in (("x.csv", 10), ("q.csv", 20)):
        zone.send(name, value)
        zone.settle()
    unreadable.clear()
    zone.memory.clock.now += 700  # not yet listed again, as with a long interval
    assert not zone.load("x.csv")
    assert zone.value() == 20
    assert zone.load("x.csv", over_younger=True)
    assert zone.value() == 10


def test_the_second_half_of_a_split_batch_is_loaded_after_the_first(make_zone: MakeZone) -> None:
    zone = make_zone("halves")
    for name, value, key in (("a.csv", 10, 1), ("b.csv", -1, 2)):
        zone.send(name, value, key)
        zone.list_files(1)
    zone.list_files(SETTLE)
    zone.settle()
    (whole,) = zone.batches()
    assert (whole.state, whole.ref.files) == ("kept out", 2)
    client, installation = zone.memory.client, zone.memory.settings.installation
    request = SplitBatch(batch=whole.ref.id, by="ana")
    zone.memory.run(split_batch(client, installation, zone.driver.name, request))
    zone.resume()
    zone.settle()
    (second,) = zone.batches()
    assert "accepted_range" in second.reason, second.reason
    assert second.tries == 1, "the bad half ran, which tells people which file is bad"


def test_a_retried_batch_of_a_zone_that_now_merges_waits_for_a_person(make_zone: MakeZone) -> None:
    zone = make_zone("remode", batch={"files": 1})
    memory, driver = zone.memory, zone.driver
    driver.mode, driver.needs_approval = "append", True
    memory.run(driver.deploy_again())
    zone.send("x.csv", 10)
    zone.settle()
    zone.approve(approve=False)
    driver.needs_approval = False
    memory.run(driver.deploy_again())
    zone.send("q.csv", 20)
    zone.settle()
    assert zone.value() == 20
    zone.resume(paused=True)
    command = BatchCommand(action="retry", batch=zone.batches()[0].ref.id, by="ana")
    memory.run(command_batch(driver.client, driver.settings.installation, driver.name, command))
    driver.mode = "merge"
    memory.run(driver.deploy_again())
    zone.resume()
    zone.settle()
    assert zone.value() == 20, "the older row replaced the younger one without a word"
    (kept_out,) = zone.batches()
    assert (kept_out.state, "younger batch" in kept_out.reason) == ("kept out", True)
