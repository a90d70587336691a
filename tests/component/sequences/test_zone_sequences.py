"""Random sequences of files that arrive in a landing zone, compared with a model of the rows that main may have.

A failed sequence is shrunk, printed as a program, and stored by Hypothesis, which tries it first the next time.
"""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

from sluice.publishing.commit_properties import RUN_ID
from tests.harness.lake_model import Content
from tests.harness.memory_system import MemorySystem
from tests.harness.sequences import THOUSAND, CommandSequence, machine, new_folder, one_of, sequences
from tests.harness.zone_driver import SETTLE, ZoneDriver
from tests.harness.zone_model import MergedZoneModel, ZoneModel

PATHS = ("a.csv", "b.csv", "c.csv")
NEW_NAME = "renamed.csv"
MODES = ("append", "merge")
OVERWRITTEN = ("load", "ignore", "alert")


class ZoneSequence(CommandSequence):
    """Files of a landing zone, its listings, and people who decide."""

    driver: ZoneDriver
    model: ZoneModel

    @initialize(overwritten=one_of(lambda: OVERWRITTEN), approval=st.booleans(), mode=one_of(lambda: MODES))
    def deploy(self, overwritten: str, approval: bool, mode: str) -> None:
        self.driver = type(self).new_driver({"overwritten": overwritten}, approval, mode)
        self.model = (MergedZoneModel if mode == "merge" else ZoneModel)(overwritten, SETTLE)
        self.next_id = 0
        self.has_bad = False
        self.undone: set[str] = set()
        self.beside: list[str] = []
        """The files in the folder of a scheduled pipeline."""
        self._run(self.driver.deploy())
        self.arrives("a.csv", 1, False)

    # --- files arrive ---

    @rule(path=st.sampled_from(PATHS), size=st.integers(1, 2), is_bad=st.booleans())
    def arrives(self, path: str, size: int, is_bad: bool) -> None:
        """Write a file, or replace the one that is there."""
        first, self.next_id = self.next_id, self.next_id + size
        ids = (PATHS.index(path), first) if self.driver.mode == "merge" else tuple(range(first, first + size))
        self._send(path, Content(ids, is_bad))

    @rule(path=st.sampled_from(PATHS), data=st.data())
    def sent_again(self, path: str, data: st.DataObject) -> None:
        """Write content that was sent before: under any path, or under its own path if each path has a key."""
        is_merged = self.driver.mode == "merge"
        sent = [each.content for each in self.model.sent if not is_merged or each.path == path]
        if sent:
            self._send(path, data.draw(st.sampled_from(sent)))

    @precondition(lambda self: self.driver.mode == "append")
    @rule(path=st.sampled_from(PATHS), of=st.sampled_from(PATHS))
    def copied_and_overwritten(self, path: str, of: str) -> None:
        """Write a copy of another file. When it has settled, replace it."""
        if of in self.model.current:
            self._send(path, self.model.current[of].content)
            self.settles()
            self.arrives(path, 1, False)

    @precondition(lambda self: self.driver.mode == "append")
    @rule(of=st.sampled_from(PATHS), is_new=st.booleans())
    def scheduled_run_beside(self, of: str, is_new: bool) -> None:
        """Run a scheduled pipeline of the same table. Its folder has copies of files that arrive in the zone."""
        if is_new:
            self.arrives(of, 1, False)
        if of in self.model.current:
            self._run_beside(of)

    @precondition(lambda self: self.driver.mode == "append" and self.driver.needs_approval)
    @rule(path=st.sampled_from(PATHS))
    def scheduled_run_while_a_run_of_the_zone_waits(self, path: str) -> None:
        """Load a file from both places: the run of the zone waits for approval until the scheduled run has ended."""
        self.arrives(path, 1, False)
        self.settles()
        self._run_beside(path)
        self.main_holds_what_it_may()
        self.decide(True)

    @precondition(lambda self: self.driver.mode == "merge" and NEW_NAME not in self.model.current)
    @rule(data=st.data())
    def sent_again_under_a_new_name(self, data: st.DataObject) -> None:
        """Write content that was sent before, after other content of the same key, under a name of its own."""
        self._send(NEW_NAME, data.draw(st.sampled_from([each.content for each in self.model.sent])))
        self.settles()

    @rule(path=st.sampled_from(PATHS), size=st.integers(1, 2))
    def half_written(self, path: str, size: int) -> None:
        """Write a file in two parts, with a listing between them."""
        self.arrives(path, size, False)
        self.list_zone(SETTLE / 2)
        self.arrives(path, size + 1, False)

    @rule(name=st.sampled_from(["link.csv", "folder"]))
    def links_lead_outside(self, name: str) -> None:
        outside = self.driver.folder / "outside"
        outside.mkdir(exist_ok=True)
        (outside / "secret.csv").write_text("id,v\n424242,1\n")
        link = self.driver.zone / name
        if not link.is_symlink():
            link.symlink_to(outside if name == "folder" else outside / "secret.csv")

    # --- listings, and decisions ---

    @rule(after=st.sampled_from([0.0, SETTLE / 2, SETTLE]))
    def list_zone(self, after: float) -> None:
        self.driver.clock.now += after
        self.model.list_files(self.driver.clock.now)
        self._run(self.driver.list_files())

    @rule()
    def settles(self) -> None:
        """List the zone twice, one settling time apart; assert that main then has all that it must."""
        self.list_zone(0.0)
        self.list_zone(SETTLE)
        status = self._run(self.driver.status())
        missing = self.model.missing(self.driver.table_rows())
        assert not missing or status.batches or self.has_bad, missing

    @precondition(lambda self: self.driver.needs_approval)
    @rule(approve=st.booleans())
    def decide(self, approve: bool) -> None:
        self._run(self.driver.decide_batch(approve=approve))

    @precondition(lambda self: self.driver.needs_approval)
    @rule(path=st.sampled_from(PATHS))
    def overwritten_under_its_run(self, path: str) -> None:
        """Replace a file while its run waits for approval. Then approve that run, and the next if there is one."""
        for _ in range(2):
            self.arrives(path, 1, False)
            self.settles()
        for _ in range(2):
            self.decide(True)
            self.settles()

    @rule(action=st.sampled_from(["retry", "set aside"]), number=st.integers(0, 3))
    def decide_on_batch(self, action: str, number: int) -> None:
        batches = [each for each in self._run(self.driver.status()).batches if each.state in ("kept out", "set aside")]
        if batches:
            self.model.list_files(self.driver.clock.now)
            self._run(self.driver.command(action, batches[number % len(batches)].ref.id))

    @rule(path=st.sampled_from(PATHS))
    def load_by_name(self, path: str) -> None:
        """Have the zone load the file of a path, as a person does after a roll-back."""
        self.model.list_files(self.driver.clock.now)
        if path in self.model.current and self._run(self.driver.load(path)):
            self.model.name(path)

    @rule(number=st.integers(0, 3))
    def roll_back(self, number: int) -> None:
        """Roll back a run and all later ones."""
        runs = [each for each in self.driver.commits() if each.properties[RUN_ID] not in self.undone]
        if not runs:
            return
        commit = runs[number % len(runs)]
        later = runs[: runs.index(commit) + 1]
        before = self.driver.table_rows(commit.parent)
        brought = [self.driver.table_rows(each.hash) - self.driver.table_rows(each.parent) for each in later]
        ended = self._run(self.driver.roll_back(commit.properties[RUN_ID]))
        assert ended.outcome == "published" and ended.result, ended
        self.undone |= {each.properties[RUN_ID] for each in later} | {ended.result.run_id}
        assert self.driver.table_rows() == before
        self.model.rolled_back(before, brought)

    # --- what must hold after each command ---

    @invariant()
    def main_holds_what_it_may(self) -> None:
        self.model.check(self.driver.table_rows())

    def teardown(self) -> None:
        if hasattr(self, "driver"):
            self._run(self.driver.remove())

    def _run_beside(self, of: str) -> None:
        """Copy a file into the folder of the scheduled pipeline; run it; compare its ending with the expected one."""
        self.driver.beside.mkdir(exist_ok=True)
        self.beside.append(f"beside {len(self.beside)}.csv")
        self.model.send_beside(self.beside[-1], of)
        (self.driver.beside / self.beside[-1]).write_text(self.model.current[of].csv)
        before = self.driver.table_rows()
        loads = self.model.load_beside(self.beside, before)
        ended = self._run(self.driver.run_beside())
        if not loads:
            assert ended.outcome == "already published", ended
        elif any(each.content.is_bad for each in loads):
            assert ended.outcome == "quarantined", ended
        else:
            assert ended.outcome == "published", ended
            assert self.driver.table_rows() == before + Counter(row for each in loads for row in each.rows)

    def _send(self, path: str, content: Content) -> None:
        self.has_bad = self.has_bad or content.is_bad
        sign = -1 if content.is_bad else 1
        rows = tuple((id, sign * (number + 1)) for number, id in enumerate(content.ids))
        if self.driver.mode == "merge":
            key, version = content.ids
            rows = ((key, sign * (version + 1)),)
        self.model.send(path, content, rows)
        (self.driver.zone / path).write_text(self.model.current[path].csv)


def zones_in_memory(system: MemorySystem, folder: Path) -> type[ZoneSequence]:
    """Return the machine for a catalog in memory."""
    numbers = iter(range(10**6))

    def new_driver(options: dict[str, str], approval: bool, mode: str) -> ZoneDriver:
        table = f"z{next(numbers)}"
        system.catalog.clear()
        driver = ZoneDriver(system.client, system.settings, system.catalog, {}, f"t.{table}", new_folder(folder, table))
        driver.clock, driver.options, driver.needs_approval, driver.mode = system.clock, options, approval, mode
        return driver

    return machine(ZoneSequence, system.run, new_driver)


@pytest.mark.usefixtures("immediate_listings")
def test_a_few_sequences_of_a_zone(memory: MemorySystem, tmp_path: Path) -> None:
    """Main has each content of a zone once, and only content that had settled."""
    run_state_machine_as_test(zones_in_memory(memory, tmp_path), settings=sequences(4, same=True))


@pytest.mark.usefixtures("immediate_listings")
def test_a_run_of_the_zone_is_approved_after_a_schedule_loaded_later_content(
    memory: MemorySystem, tmp_path: Path
) -> None:
    """The run took the first content of its path before the next arrived. Main gets both, each once."""
    zone = zones_in_memory(memory, tmp_path)()
    zone.deploy(overwritten="ignore", approval=True, mode="append")
    zone.settles()
    zone.scheduled_run_while_a_run_of_the_zone_waits(path="a.csv")
    zone.settles()
    zone.main_holds_what_it_may()
    assert zone.driver.table_rows() == {(0, 1): 1, (1, 1): 1}
    zone.teardown()


@THOUSAND
@pytest.mark.matrix
@pytest.mark.usefixtures("immediate_listings")
@pytest.mark.timeout(7200)
def test_a_thousand_sequences_of_a_zone(memory: MemorySystem, tmp_path: Path, number: int) -> None:
    """The same with a thousand sequences, others each time."""
    run_state_machine_as_test(zones_in_memory(memory, tmp_path), settings=sequences(number))
