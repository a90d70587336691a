"""Random sequences of runs and backfills of partitions, in every key and mode, compared with a model of main.

A failed sequence is shrunk, printed as a program, and stored by Hypothesis, which tries it first the next time.
"""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

from tests.harness.lake_driver import Ending
from tests.harness.memory_system import MemorySystem
from tests.harness.partition_driver import BackfillEnding, PartitionDriver, partitions_between
from tests.harness.partition_model import ORDERED_KEYS, YEARS, Content, Load, PartitionModel, Row
from tests.harness.sequences import THOUSAND, CommandSequence, machine, new_folder, one_of, sequences

KEYS = ("path", "transform", "path and transform", "args", "environment", "conf", "statements")
MODES = ("append", "merge", "overwrite", "overwrite_partitions")
SLOTS = ("a", "b")
NOT_STARTED = ("waiting", "cancelled")
STOPPED = ("refused", "failed", "quarantined", "discarded", "already published")
"""Outcomes of runs that published nothing."""


class PartitionSequence(CommandSequence):
    """One pipeline and one table, files of partitions, and runs and backfills that load them."""

    driver: PartitionDriver
    model: PartitionModel

    # --- a pipeline, and its files ---

    @initialize(key=one_of(lambda: KEYS), mode=one_of(lambda: MODES))
    def new_pipeline(self, key: str, mode: str) -> None:
        mode = "append" if key in ORDERED_KEYS else mode
        self.driver, self.model = type(self).new_driver(key, mode), PartitionModel(mode, key)
        self.files: dict[str, dict[str, tuple[Content, int]]] = {}
        self.sent: dict[str, list[Content]] = {}
        self.written = 0
        for folder in self._folders:
            (self.driver.folder / folder).mkdir()
            self.files[folder] = {}
            if key not in ORDERED_KEYS:
                self._write(folder, "a")

    def _has_files(self) -> bool:
        return self.model.key not in ORDERED_KEYS

    @precondition(_has_files)
    @rule(folder=st.integers(0, 2), slot=st.sampled_from(SLOTS), is_bad=st.booleans())
    def write_file(self, folder: int, slot: str, is_bad: bool) -> None:
        self._write(self._folders[folder % len(self._folders)], slot, is_bad=is_bad)

    @precondition(_has_files)
    @rule(folder=st.integers(0, 2), slot=st.sampled_from(SLOTS), number=st.integers(0, 3))
    def send_again(self, folder: int, slot: str, number: int) -> None:
        """Write earlier content of a path again."""
        name = self._folders[folder % len(self._folders)]
        if sent := self.sent.get(f"{name}/{slot}"):
            self._put(name, slot, sent[number % len(sent)])

    @precondition(lambda self: self.model.key == "path" and self.model.mode == "append")
    @rule(of=st.integers(0, 2), to=st.integers(0, 2))
    def copy_to_another_partition(self, of: int, to: int) -> None:
        if "a" in self.files[YEARS[of]]:
            self._put(YEARS[to], "b", self.files[YEARS[of]]["a"][0])

    @precondition(lambda self: self.model.mode == "overwrite_partitions" and self.model.key == "path")
    @rule(folder=st.integers(0, 2), of=st.integers(0, 2))
    def write_rows_of_another_partition(self, folder: int, of: int) -> None:
        self._write(YEARS[folder], "b", p=int(YEARS[of]))

    # --- runs ---

    @precondition(lambda self: not self._has_files())
    @rule(year=st.sampled_from(YEARS))
    def run_month(self, year: str) -> None:
        self.run_partition(f"{year}-06")

    @rule(year=st.sampled_from(YEARS))
    def run_partition(self, year: str) -> None:
        expected, loads = self._expected(year)
        ended = self._run(self.driver.run_partition(year))
        if expected == "refused":
            assert ended.outcome in STOPPED, ended
        else:
            assert ended.outcome == expected, (ended, loads)
        self._record(ended, loads)

    @rule(first=st.integers(0, 2), last=st.integers(0, 2), at_once=st.sampled_from([1, 1, 3]), heals=st.booleans())
    def backfill_each(self, first: int, last: int, at_once: int, heals: bool) -> None:
        stated, years = partitions_between(min(first, last), max(first, last))
        self._is_refused = self.model.mode == "overwrite" or (self.model.runs_in_order and at_once > 1)
        self._compare_backfill(years, self.driver.backfill(stated, at_once=at_once))
        if self._is_paused and heals and self._has_files():
            self._heal(years)
            self._compare_backfill(years, self.driver.retry())
        self._end_backfill()

    @precondition(_has_files)
    @rule(rolled_back=st.integers(0, 2))
    def start_paused_backfill_again(self, rolled_back: int) -> None:
        """Roll back a run while a backfill is paused by a bad file, repair the file, and start the backfill again."""
        stated, years = partitions_between(0, 2)
        self._write(self._folders[len(self._folders) // 2], "b", is_bad=True)
        self._is_refused = self.model.mode == "overwrite"
        self._compare_backfill(years, self.driver.backfill(stated))
        if self._is_paused:
            if self.model.published:
                self._roll_back(self.model.published[rolled_back % len(self.model.published)].run_id)
            self._heal(years)
            self._compare_backfill(years, self.driver.backfill(stated))
        self._end_backfill()

    @precondition(_has_files)
    @rule(first=st.integers(0, 1), more=st.integers(1, 2))
    def backfill_together(self, first: int, more: int) -> None:
        stated, years = partitions_between(first, min(first + more, 2))
        expected = {year: self._expected(year) for year in years}
        head = self.driver.main()
        ended: BackfillEnding = self._run(self.driver.backfill(stated, together=True))
        self._is_paused = ended.status is not None and bool(ended.status.progress.paused)
        new = self._run(self.driver.published_since(head))
        assert len(new) <= 1, "partitions that belong together were published by more than one merge"
        outcomes = {each for each, _ in expected.values()}
        if new:
            assert outcomes <= {"published", "already published"}, (expected, ended)
            joint = tuple(load for _, loads in expected.values() for load in loads)
            self.model.publish(new[0][0], joint)
        elif outcomes <= {"published", "already published"} and "published" in outcomes:
            assert self.model.mode != "append", ended
        self._end_backfill()

    @precondition(_has_files)
    @rule(year=st.sampled_from(YEARS), slot=st.sampled_from(SLOTS))
    def load_content_that_comes_back(self, year: str, slot: str) -> None:
        """Load content of a path, then other content of it, then the first content again."""
        folder = year if year in self.files else "all"
        for _ in range(2):
            self._write(folder, slot)
            self.run_partition(year)
        self._put(folder, slot, self.sent[f"{folder}/{slot}"][-2])
        self.run_partition(year)

    # --- quarantines and roll-back ---

    @precondition(lambda self: self.model.quarantines)
    @rule(data=st.data(), repairs=st.booleans())
    def release(self, data: st.DataObject, repairs: bool) -> None:
        branch = data.draw(st.sampled_from(sorted(self.model.quarantines)))
        loads, commits = self.model.quarantines[branch]
        repair = [f"UPDATE {self.driver.table} SET v = 0 WHERE v < 0"] if repairs else []
        ended = self._run(self.driver.release(branch, None, *repair))
        is_refused = any(map(self.model.is_held, loads)) or self.model.would_double(loads, commits)
        if not repairs or is_refused:
            assert ended.outcome in STOPPED, ended
        elif ended.outcome == "published" and ended.result:
            self.model.publish(ended.result.run_id, loads, repaired=True)
            del self.model.quarantines[branch]
        else:
            assert self.model.order_matters and commits != self.model.commits, ended

    @precondition(lambda self: self.model.quarantines)
    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        branch = data.draw(st.sampled_from(sorted(self.model.quarantines)))
        self._run(self.driver.discard(branch))
        del self.model.quarantines[branch]

    @precondition(lambda self: self.model.published)
    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        self._roll_back(data.draw(st.sampled_from([run.run_id for run in self.model.published])))

    def _roll_back(self, run_id: str) -> None:
        ended = self._run(self.driver.roll_back(run_id))
        assert ended.outcome == "published", ended
        self.model.roll_back(run_id)

    # --- what must hold after each command ---

    @invariant()
    def main_holds_what_the_model_holds(self) -> None:
        assert self.driver.table_rows() == self.model.rows

    @invariant()
    def no_branch_is_left(self) -> None:
        assert self.driver.quarantines() == set(self.model.quarantines)
        assert not self.driver.branches_of_attempts() and not self.driver.branches_of_backfills()

    # --- the expected result of a partition ---

    def _expected(self, year: str) -> tuple[str, tuple[Load, ...]]:
        """Return the expected outcome of a run of a partition, and the loads of the run."""
        wanted = self._wanted(year)
        loads = self.model.to_load(wanted)
        if not wanted:
            return "refused", ()
        if not loads:
            return "already published", ()
        is_beside = self.model.would_double(loads) or self.model.replaces_other_partitions(loads)
        if self.model.is_overtaken(year) or self.model.overlaps(year) or is_beside:
            return "refused", loads
        return ("quarantined" if any(load.content.is_bad for load in loads) else "published"), loads

    def _wanted(self, year: str) -> list[Load]:
        if not self._has_files():
            row: Row = (int(year[:4]), 1, int(year[:4]))
            return [Load(Content((row,)), year, "", 0)]
        folder = year if year in self.files else "all"
        files = sorted(self.files[folder].items())
        return [Load(content, year, f"{folder}/{slot}", sent_at) for slot, (content, sent_at) in files]

    def _record(self, ended: Ending, loads: tuple[Load, ...]) -> None:
        if ended.outcome == "published" and ended.result:
            self.model.publish(ended.result.run_id, loads)
        elif ended.result and ended.result.branch:
            self.model.quarantines[ended.result.branch] = (loads, self.model.commits)

    def _compare_backfill(self, years: Any, backfill: Any) -> None:
        """Run a backfill until it pauses or ends; compare the state of each partition with the expected one."""
        head = self.driver.main()
        ended: BackfillEnding = self._run(backfill)
        self._is_paused = ended.status is not None and bool(ended.status.progress.paused)
        published = self._run(self.driver.published_since(head))
        brought = [year for _, year in published]
        if ended.status is None:
            assert not published and self._is_refused, ended
            return
        assert not self._is_refused, ended
        expected_before = {year: self._expected(year)[0] for year in years}
        alone = [year for year in years if expected_before[year] != "published"]
        assert len(brought) == len({*brought}), f"a backfill published a partition twice: {brought}"
        for run_id, year in published:
            expected, loads = self._expected(year)
            assert expected == "published", (year, ended)
            self.model.publish(run_id, loads)
        for year in years:
            state, loads = ended.states[year], self._expected(year)[1]
            assert (state == "published") <= (year in brought or not loads), (year, ended)
            assert state != "skipped" or not loads, f"{year} was skipped, and main does not hold {loads}"
            assert state not in NOT_STARTED or alone, ended
            assert state != "failed" or "refused" in (expected_before[year], self._expected(year)[0]), (year, ended)

    def _end_backfill(self) -> None:
        """Cancel a paused backfill, and delete its quarantines."""
        if self._is_paused:
            self._run(self.driver.cancel_backfill())
        for branch in self.driver.quarantines() - set(self.model.quarantines):
            self._run(self.driver.discard(branch))

    def _heal(self, years: Any) -> None:
        """Replace the bad files of partitions."""
        for folder in self._folders:
            for slot, (content, _) in list(self.files[folder].items()):
                if content.is_bad and (folder in years or folder == "all"):
                    self._write(folder, slot)

    @property
    def _folders(self) -> tuple[str, ...]:
        return ("all",) if self.driver.key == "transform" else YEARS

    def _write(self, folder: str, slot: str, *, is_bad: bool = False, p: int = 0) -> None:
        """Write new content: a row for the partition, or one for each if a single file has the rows of all."""
        self.written += 1
        id = 10 * (SLOTS.index(slot) + 1) if self.model.mode == "merge" else 10 * (self.written + len(SLOTS))
        years = YEARS if folder == "all" else (folder,)
        rows = tuple((id, -self.written if is_bad else self.written, p or int(year)) for year in years)
        self._put(folder, slot, Content(rows, is_bad))

    def _put(self, folder: str, slot: str, content: Content) -> None:
        self.written += 1
        self.sent.setdefault(f"{folder}/{slot}", []).append(content)
        self.files[folder][slot] = (content, self.written)
        (self.driver.folder / folder / f"{slot}.csv").write_text(content.csv)


def partitions_in_memory(system: MemorySystem, folder: Path) -> type[PartitionSequence]:
    """Return the machine for a catalog in memory."""
    numbers = iter(range(10**6))

    def new_driver(key: str, mode: str) -> PartitionDriver:
        table = f"p{next(numbers)}"
        system.catalog.clear()
        files = new_folder(folder, table)
        driver = PartitionDriver(system.client, system.settings, system.catalog, {}, f"t.{table}", files, key=key)
        driver.mode = mode
        system.engine.programs = {driver.program: driver.append_year}
        return driver

    return machine(PartitionSequence, system.run, new_driver)


def test_a_few_sequences_of_partitions(memory: MemorySystem, tmp_path: Path) -> None:
    """In any order of loads, main has each row once, and no older row replaces a younger one."""
    run_state_machine_as_test(partitions_in_memory(memory, tmp_path), settings=sequences(4, same=True))


@THOUSAND
@pytest.mark.matrix
@pytest.mark.timeout(7200)
def test_a_thousand_sequences_of_partitions(memory: MemorySystem, tmp_path: Path, number: int) -> None:
    """The same with a thousand sequences, others each time."""
    run_state_machine_as_test(partitions_in_memory(memory, tmp_path), settings=sequences(number))
