"""Random sequences of files with rows of one key: no row on main is replaced by that of an older file.

Each file has a value of its own, and each is listed before the next one is sent, so that all have an order.
"""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

from runtime.arrivals.landing_zones import pause_zone
from sluice.contracts.zone_requests import PauseZone
from tests.harness.memory_system import MemorySystem
from tests.harness.sequences import THOUSAND, CommandSequence, machine, new_folder, one_of, sequences
from tests.harness.unreadable_files import make_unreadable
from tests.harness.zone_driver import SETTLE, ZoneDriver

PATHS = ("a.csv", "b.csv", "c.csv")
OVERWRITTEN = ("load", "ignore")
READ_AGAIN = 700.0
"""Time after which a landing zone reads refused files again, in seconds."""


class OrderSequence(CommandSequence):
    """Files of a landing zone in `mode: merge`, and people who never say `--over-younger`."""

    driver: ZoneDriver
    unreadable: set[str]

    @initialize(overwritten=one_of(lambda: OVERWRITTEN), approval=st.booleans(), files=st.integers(1, 2))
    def deploy(self, overwritten: str, approval: bool, files: int) -> None:
        self.driver = type(self).new_driver({"overwritten": overwritten, "batch": {"files": files}}, approval)
        self.latest: dict[int, int] = {}
        """Number of the latest delivery of each value."""
        self.value, self.published = 0, 0
        """The value on main, and the number of its latest delivery when it was published."""
        self.deliveries, self.last_is_new = 0, True
        self.unreadable.clear()
        self._run(self.driver.deploy())

    @rule(path=st.sampled_from(PATHS))
    def sends(self, path: str) -> None:
        """Send a file with a new value."""
        self._send(path, self.deliveries + 1)

    @precondition(lambda self: self.latest)
    @rule(path=st.sampled_from(PATHS), data=st.data())
    def sends_again(self, path: str, data: st.DataObject) -> None:
        """Send a file with a value that was sent before."""
        self._send(path, data.draw(st.sampled_from(sorted(self.latest))))

    @rule(path=st.sampled_from(PATHS), by=st.sampled_from(["", "run "]))
    def breaks(self, path: str, by: str) -> None:
        """Make a file unreadable for listings, or for runs."""
        self.unreadable.add(f"{by}{path}")

    @rule()
    def mends(self) -> None:
        """Make all files readable, and wait until the zone reads them again."""
        self.unreadable.clear()
        self._list(READ_AGAIN)

    @rule(late=st.sampled_from(PATHS), younger=st.sampled_from(PATHS), by=st.sampled_from(["", "run "]))
    def comes_too_late(self, late: str, younger: str, by: str) -> None:
        """Send a file that cannot be read until a younger one was sent. Then retry its batch, if it has one."""
        self.breaks(late, by)
        self.sends(late)
        self.settles()
        if by:
            self.resumes()
        self.sends(younger)
        self.settles()
        self.mends()
        self.decides_about_a_batch("retry", 0)
        self.settles()

    @precondition(lambda self: self.driver.needs_approval)
    @rule(path=st.sampled_from(PATHS), younger=st.sampled_from(PATHS))
    def is_overwritten_under_its_run(self, path: str, younger: str) -> None:
        """Overwrite a file whose run waits for an approval, and send a younger one. Then approve all runs."""
        for sent in (path, path, younger):
            self.sends(sent)
            self.settles()
        for _ in range(3):
            self.decides(True)
            self.settles()

    @rule(after=st.sampled_from([1.0, SETTLE / 2]))
    def lists(self, after: float) -> None:
        self._list(after)

    @rule()
    def settles(self) -> None:
        """List the zone until all has settled; assert that main has the last file, if nothing stands in its way."""
        for after in (SETTLE, SETTLE, 1.0):
            self._list(after)
        status = self._run(self.driver.status())
        is_free = not (status.batches or status.paused or self.unreadable)
        if is_free and self.last_is_new and self.latest and self.driver.options["overwritten"] == "load":
            self.main_never_goes_back()
            assert self.value == max(self.latest), "main lacks the last file"

    @precondition(lambda self: self.driver.needs_approval)
    @rule(approve=st.booleans())
    def decides(self, approve: bool) -> None:
        self._run(self.driver.decide_batch(approve=approve))

    @rule(action=st.sampled_from(["retry", "set aside"]), number=st.integers(0, 3))
    def decides_about_a_batch(self, action: str, number: int) -> None:
        batches = [each for each in self._run(self.driver.status()).batches if each.state in ("kept out", "set aside")]
        if batches:
            self._run(self.driver.command(action, batches[number % len(batches)].ref.id))

    @rule()
    def resumes(self) -> None:
        """Resume the zone, without a decision about the batch for which it paused."""
        request = PauseZone(paused=False, by="ana")
        self._run(pause_zone(self.driver.client, self.driver.settings.installation, self.driver.name, request))

    @rule(path=st.sampled_from(PATHS))
    def loads_by_name(self, path: str) -> None:
        self._run(self.driver.load(path))

    @rule(overwritten=one_of(lambda: OVERWRITTEN))
    def deploys_again(self, overwritten: str) -> None:
        self.driver.options["overwritten"] = overwritten
        self._run(self.driver.deploy_again())

    @invariant()
    def main_never_goes_back(self) -> None:
        for commit in [each for each in self.driver.commits()[::-1] if each.hash not in self.seen]:
            self.seen.add(commit.hash)
            for _, value in self.driver.table_rows(commit.hash):
                assert self.latest[value] >= self._youngest_on_main(), f"{value} stands over {self.value}"
                self.value, self.published = value, self.latest[value]

    def teardown(self) -> None:
        if hasattr(self, "driver"):
            self._run(self.driver.remove())

    def __init__(self) -> None:
        super().__init__()
        self.seen = set[str]()

    def _youngest_on_main(self) -> int:
        """Return the number of the delivery on main: the latest one of its value, unless the zone refused files.

        While main has a value, a copy of its file is refused once younger content is on main, with a reason.
        """
        has_refused = self._run(self.driver.status()).counts.get("refused", 0)
        return self.published if has_refused else self.latest.get(self.value, 0)

    def _list(self, after: float) -> None:
        self._run(self.driver.list_files(after))

    def _send(self, path: str, value: int) -> None:
        self.deliveries += 1
        self.last_is_new = value not in self.latest
        self.latest[value] = self.deliveries
        (self.driver.zone / path).write_text(f"id,v\n1,{value}\n")
        self._list(1.0)


def zones_in_memory(system: MemorySystem, folder: Path, unreadable: set[str]) -> type[OrderSequence]:
    """Return the machine for a catalog in memory."""
    numbers = iter(range(10**6))

    def new_driver(options: dict[str, Any], approval: bool) -> ZoneDriver:
        table = f"o{next(numbers)}"
        system.catalog.clear()
        driver = ZoneDriver(system.client, system.settings, system.catalog, {}, f"t.{table}", new_folder(folder, table))
        driver.clock, driver.options, driver.needs_approval, driver.mode = system.clock, options, approval, "merge"
        return driver

    made = machine(OrderSequence, system.run, new_driver)
    made.unreadable = unreadable
    return made


@pytest.mark.usefixtures("immediate_listings")
def test_a_few_sequences_of_files_with_an_order(
    memory: MemorySystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No older row replaces a younger one."""
    of = zones_in_memory(memory, tmp_path, make_unreadable(monkeypatch))
    run_state_machine_as_test(of, settings=sequences(4, same=True))


@pytest.mark.usefixtures("immediate_listings")
def test_a_copy_of_what_main_has_is_refused_when_younger_content_was_published_first(
    memory: MemorySystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone = zones_in_memory(memory, tmp_path, make_unreadable(monkeypatch))()
    zone.deploy(overwritten="load", files=1, approval=False)
    zone.sends(path="a.csv")
    zone.settles()
    zone.main_never_goes_back()
    zone.sends(path="a.csv")
    zone._send("c.csv", 1)
    zone.settles()
    zone.main_never_goes_back()
    assert (zone.value, zone._run(zone.driver.status()).counts) == (2, {"loaded": 1, "refused": 1})
    zone.teardown()


@THOUSAND
@pytest.mark.matrix
@pytest.mark.usefixtures("immediate_listings")
@pytest.mark.timeout(7200)
def test_a_thousand_sequences_of_files_with_an_order(
    memory: MemorySystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The same with a thousand sequences, others each time."""
    of = zones_in_memory(memory, tmp_path, make_unreadable(monkeypatch))
    run_state_machine_as_test(of, settings=sequences(number))


@pytest.mark.usefixtures("immediate_listings")
def test_the_machine_notices_that_late_files_are_not_kept_out(
    memory: MemorySystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps are fixed, because a random search takes minutes. The other mends only avoid needless questions."""
    unreadable = make_unreadable(monkeypatch)

    def drive(folder: Path) -> None:
        sequence = zones_in_memory(memory, folder, unreadable)()
        sequence.deploy(overwritten="load", approval=False, files=1)
        try:
            sequence.comes_too_late("a.csv", "b.csv", "")
            sequence.main_never_goes_back()
        finally:
            sequence.teardown()

    drive(tmp_path / "on")
    monkeypatch.setattr("sluice.arrivals.batch_order.BatchOrder.overtaken_by", lambda *_: "")
    with pytest.raises(AssertionError, match="stands over"):
        drive(tmp_path / "off")
