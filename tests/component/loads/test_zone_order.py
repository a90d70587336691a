"""A landing zone in `mode: merge`: an older file never replaces the rows of a younger one without a decision."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from activities.run import prepare_run
from runtime.arrivals.landing_zones import pause_zone
from sluice.contracts.arrivals import Batch
from sluice.contracts.zone_requests import PauseZone
from sluice.publishing.commit_properties import RUN_ID
from tests.harness.memory_system import MemorySystem
from tests.harness.sequences import new_folder
from tests.harness.unreadable_files import make_unreadable
from tests.harness.zone_driver import SETTLE, ZoneDriver

pytestmark = pytest.mark.usefixtures("immediate_listings")


class MergeZone:
    """A landing zone whose files have rows of a key and a value."""

    def __init__(self, memory: MemorySystem, folder: Path, name: str, options: dict[str, Any]) -> None:
        memory.catalog.clear()
        at = new_folder(folder, name)
        self.memory = memory
        self.driver = ZoneDriver(memory.client, memory.settings, memory.catalog, {}, f"t.{name}", at)
        self.driver.clock, self.driver.options, self.driver.mode = memory.clock, options, "merge"
        memory.run(self.driver.deploy())

    def send(self, path: str, value: int, key: int = 1) -> None:
        """Write a file with one row."""
        (self.driver.zone / path).write_text(f"id,v\n{key},{value}\n")

    def list_files(self, after: float = 0.0) -> None:
        """List the zone."""
        self.memory.run(self.driver.list_files(after))

    def settle(self) -> None:
        """List the zone until all present files have settled and were loaded."""
        for after in (0.0, SETTLE, 0.0):
            self.list_files(after)

    def value(self, key: int = 1) -> int:
        """Return the value of a key on main."""
        return next(v for id, v in self.driver.table_rows() if id == key)

    def batches(self) -> list[Batch]:
        """Return the batches of the zone."""
        return self.memory.run(self.driver.status()).batches

    def decide(self, action: str, batch: Batch, *, over_younger: bool = False) -> None:
        """Decide about a batch."""
        self.memory.run(self.driver.command(action, batch.ref.id, over_younger=over_younger))
        self.list_files()

    def refuse_then_load(self, unreadable: set[str]) -> Batch:
        """Have the run of a file fail, and load a younger file. Return the batch of the first one, readable again."""
        unreadable.add("run x.csv")
        self.send("x.csv", 10)
        self.settle()
        (refused,) = self.batches()
        self.resume()
        self.send("q.csv", 20)
        self.settle()
        unreadable.clear()
        return refused

    def approve(self, *, approve: bool = True) -> None:
        """Decide about the run that waits for approval, if there is one, and list the zone."""
        self.memory.run(self.driver.decide_batch(approve=approve))
        if approve:
            self.settle()

    def resume(self, *, paused: bool = False) -> None:
        """Resume the zone, without a decision about the batch for which it paused, or pause it."""
        driver, request = self.driver, PauseZone(paused=paused, by="ana")
        self.memory.run(pause_zone(driver.client, driver.settings.installation, driver.name, request))

    def load(self, path: str, *, over_younger: bool = False) -> bool:
        """Load a file by its name."""
        return self.memory.run(self.driver.load(path, over_younger=over_younger))


MakeZone = Callable[..., MergeZone]


@pytest.fixture
def make_zone(memory: MemorySystem, tmp_path: Path) -> Iterator[MakeZone]:
    zones: list[MergeZone] = []

    def make(name: str, **options: Any) -> MergeZone:
        zones.append(MergeZone(memory, tmp_path, name, options))
        return zones[-1]

    yield make
    for zone in zones:
        memory.run(zone.driver.remove())


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
