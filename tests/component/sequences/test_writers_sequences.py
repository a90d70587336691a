"""Random sequences of two pipelines that load one table, and of their quarantines, compared with a model of main.

A failed sequence is shrunk, printed as a program, and stored by Hypothesis, which tries it first the next time.
"""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

from tests.harness.lake_driver import Ending
from tests.harness.loaded_paths import paths_of
from tests.harness.memory_system import MemorySystem
from tests.harness.partition_model import Content
from tests.harness.sequences import THOUSAND, CommandSequence, machine, new_folder, one_of, sequences
from tests.harness.writers_driver import WritersDriver
from tests.harness.writers_model import KeptRows, WritersModel

WRITERS = ("p", "q")
MODES = ("append", "overwrite", "overwrite_partitions")
SLOTS = ("a", "b")
PARTS = (2018, 2019)
NOT_PUBLISHED = ("refused", "failed", "quarantined", "discarded", "already published")
"""Outcomes of releases that published nothing."""


class WritersSequence(CommandSequence):
    """Two pipelines, each with a folder of files, their runs, and people who decide about quarantines."""

    driver: WritersDriver
    model: WritersModel

    # --- two pipelines, and their files ---

    @initialize(one=one_of(lambda: MODES), other=one_of(lambda: MODES))
    def new_pipelines(self, one: str, other: str) -> None:
        modes = dict(zip(WRITERS, (one, other), strict=True))
        self.driver, self.model = type(self).new_driver(modes), WritersModel(modes)
        self.files: dict[str, dict[str, Content]] = {}
        self.sent: list[Content] = []
        self.kept: dict[str, str] = {}
        """The time until which a person keeps a quarantine, by branch."""
        self.released: list[tuple[str, list[int]]] = []
        """The branch of each published quarantine, and the ids of its bad rows."""
        for writer in WRITERS:
            (self.driver.folder / writer).mkdir()
            self.files[writer] = {}
            self._write(writer, "a", 0)

    @rule(writer=st.sampled_from(WRITERS), slot=st.sampled_from(SLOTS), part=st.integers(0, 1), is_bad=st.booleans())
    def write_file(self, writer: str, slot: str, part: int, is_bad: bool) -> None:
        self._write(writer, slot, part, is_bad=is_bad)

    @rule(writer=st.sampled_from(WRITERS), slot=st.sampled_from(SLOTS), data=st.data())
    def send_again(self, writer: str, slot: str, data: st.DataObject) -> None:
        """Write content that was sent before, to the same pipeline or to the other one."""
        content = data.draw(st.sampled_from(self.sent))
        if content not in self.files[writer].values():
            self._put(writer, slot, content)

    # --- runs ---

    @rule(writer=st.sampled_from(WRITERS))
    def run_pipeline(self, writer: str) -> None:
        self._start(writer, is_strict=True)

    @rule(writer=st.sampled_from(WRITERS))
    def run_with_a_laxer_check(self, writer: str) -> None:
        """Load all files, bad ones too, such as those that a quarantine has."""
        self._start(writer, is_strict=False)

    @rule(writer=st.sampled_from(WRITERS), other=st.sampled_from(WRITERS))
    def load_between_two_runs(self, writer: str, other: str) -> None:
        """Run a pipeline with the same files before and after a run of the other one, or after one of its own."""
        for each in (writer, other, writer):
            self.run_pipeline(each)

    @rule(writer=st.sampled_from(WRITERS), other=st.sampled_from(WRITERS), data=st.data())
    def roll_back_what_replaced_it(self, writer: str, other: str, data: st.DataObject) -> None:
        """Run a pipeline after a run of the other one was rolled back."""
        self.run_pipeline(writer)
        number = len(self.model.published)
        self.run_pipeline(other)
        if len(self.model.published) > number:
            self._roll_back(self.model.published[-1].run_id)
        self.run_pipeline(writer)

    # --- quarantines, and roll-back ---

    @precondition(lambda self: self.model.quarantines)
    @rule(data=st.data(), days=st.integers(1, 40))
    def keep(self, data: st.DataObject, days: int) -> None:
        branch = data.draw(st.sampled_from(list(self.model.quarantines)))
        until = (datetime.now(timezone.utc) + timedelta(days=days)).isoformat(timespec="seconds")
        self._run(self.driver.keep(branch, until))
        self.kept[branch] = until

    @precondition(lambda self: self.model.quarantines)
    @rule(data=st.data(), repairs=st.booleans())
    def release(self, data: st.DataObject, repairs: bool) -> None:
        self._release(data.draw(st.sampled_from(list(self.model.quarantines))), repairs=repairs)

    @rule(writer=st.sampled_from(WRITERS), younger=st.sampled_from(WRITERS), keeps=st.booleans())
    def release_after_a_younger_load(self, writer: str, younger: str, keeps: bool) -> None:
        """Repair a quarantine after a younger load, twice."""
        self._write(writer, "b", 0, is_bad=True)
        self.run_pipeline(writer)
        branches = [branch for branch, kept in self.model.quarantines.items() if kept.pipeline == writer]
        self._write(writer, "b", 1)
        self.run_pipeline(younger)
        if branches and keeps:
            self._run(self.driver.keep(branches[-1], "2040-01-01T00:00:00+00:00"))
        for branch in branches[-1:] * 2:
            if branch in self.model.quarantines:
                self._release(branch, repairs=True)

    @rule(writer=st.sampled_from(WRITERS), other=st.sampled_from(WRITERS))
    def release_after_its_files_were_loaded(self, writer: str, other: str) -> None:
        """Repair a quarantine after a run of either pipeline loaded its files, with a laxer check."""
        content = self._write(writer, "b", 0, is_bad=True)
        self.run_pipeline(writer)
        branches = [branch for branch, kept in self.model.quarantines.items() if content in kept.contents]
        if content not in self.files[other].values():
            self._put(other, "b", content)
        self.run_with_a_laxer_check(other)
        for branch in branches:
            self._release(branch, repairs=True)

    @precondition(lambda self: self.released)
    @rule(data=st.data())
    def release_again(self, data: st.DataObject) -> None:
        """Release a quarantine that was published before, even if its run was rolled back."""
        branch, ids = data.draw(st.sampled_from(self.released))
        ended = self._run(self.driver.repair(branch, ids))
        assert ended.outcome in NOT_PUBLISHED, ended

    @precondition(lambda self: self.model.quarantines)
    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        branch = data.draw(st.sampled_from(list(self.model.quarantines)))
        for _ in range(2):  # the second one finds nothing
            self._run(self.driver.discard(branch))
        del self.model.quarantines[branch]

    @precondition(lambda self: self.model.published)
    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        self._roll_back(data.draw(st.sampled_from([run.run_id for run in self.model.published])))

    # --- what must hold after each command ---

    @invariant()
    def main_holds_what_the_model_holds(self) -> None:
        assert self.driver.table_rows() == self.model.rows

    @invariant()
    def no_branch_is_left(self) -> None:
        assert self.driver.quarantines() == set(self.model.quarantines)
        assert not self.driver.branches_of_attempts()

    def _start(self, writer: str, *, is_strict: bool) -> None:
        """Run a pipeline, and compare its ending with the expected one."""
        loads = self.model.to_load(writer, self.files[writer].values())
        table = self.model.table if self.driver.has_table() else None
        paths = paths_of(loads, [(f"{writer}/{slot}", content) for slot, content in self.files[writer].items()])
        ended: Ending = self._run(self.driver.run(self.driver.pipeline_of(writer, strict=is_strict)))
        if not loads:
            assert ended.outcome == "already published", ended
        elif is_strict and any(content.is_bad for content in loads):
            assert ended.outcome == "quarantined" and ended.result and ended.result.branch, ended
            self.model.quarantines[ended.result.branch] = KeptRows(writer, loads, self.model.commits, table, paths)
        else:
            assert ended.outcome == "published" and ended.result, ended
            self.model.publish(ended.result.run_id, writer, loads, paths)

    def _release(self, branch: str, *, repairs: bool) -> None:
        """Release a quarantine, and compare the ending with the expected one."""
        kept = self.model.quarantines[branch]
        ended: Ending = self._run(self.driver.repair(branch, kept.bad_ids if repairs else []))
        if not self.model.is_releasable(kept) or not repairs:
            assert ended.outcome in NOT_PUBLISHED, (ended, kept)
            return
        if ended.outcome == "discarded" and any(v < 0 for _, v, _ in self.model.rows):
            return  # the engine's UPDATE rewrites all rows, and the audit found bad ones that a laxer check had let in
        assert ended.outcome == "published" and ended.result, (ended, kept)
        self.model.publish(ended.result.run_id, kept.pipeline, kept.contents, kept.paths, repaired=kept.bad_ids)
        del self.model.quarantines[branch]
        self.released.append((branch, kept.bad_ids))

    def _roll_back(self, run_id: str) -> None:
        ended = self._run(self.driver.roll_back(run_id))
        assert ended.outcome == "published", ended
        self.model.roll_back(run_id)

    def _write(self, writer: str, slot: str, part: int, *, is_bad: bool = False) -> Content:
        """Write new content: one row."""
        id = len(self.sent) + 1
        content = Content(((id, -1 if is_bad else 1, PARTS[part]),), is_bad)
        self.sent.append(content)
        self._put(writer, slot, content)
        return content

    def _put(self, writer: str, slot: str, content: Content) -> None:
        self.files[writer][slot] = content
        (self.driver.folder / writer / f"{slot}.csv").write_text(content.csv)


def writers_in_memory(system: MemorySystem, folder: Path) -> type[WritersSequence]:
    """Return the machine for a catalog in memory."""
    numbers = iter(range(10**6))

    def new_driver(modes: dict[str, str]) -> WritersDriver:
        table = f"w{next(numbers)}"
        system.catalog.clear()
        files = new_folder(folder, table)
        return WritersDriver(system.client, system.settings, system.catalog, {}, f"t.{table}", files, modes=modes)

    return machine(WritersSequence, system.run, new_driver)


def test_a_few_sequences_of_two_pipelines(memory: MemorySystem, tmp_path: Path) -> None:
    """Main has the rows that the loads of both pipelines leave, and no released row twice."""
    run_state_machine_as_test(writers_in_memory(memory, tmp_path), settings=sequences(2, same=True))


@THOUSAND
@pytest.mark.matrix
@pytest.mark.timeout(7200)
def test_a_thousand_sequences_of_two_pipelines(memory: MemorySystem, tmp_path: Path, number: int) -> None:
    """The same with a thousand sequences, others each time."""
    run_state_machine_as_test(writers_in_memory(memory, tmp_path), settings=sequences(number))
