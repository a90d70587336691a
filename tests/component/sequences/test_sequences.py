"""Random sequences of people's actions, compared with a model of main.

A failed sequence is shrunk, printed as a program, and stored by Hypothesis, which tries it first the next time.
"""

import uuid
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

from lakehouse.open_catalog import open_catalog
from runtime.run.find_run import Handle
from sluice.settings import read_settings
from tests.harness.lake_driver import Ending, LakeDriver
from tests.harness.lake_model import Content, LakeModel
from tests.harness.loaded_paths import Paths, paths_of
from tests.harness.memory_system import MemorySystem
from tests.harness.sequences import THOUSAND, CommandSequence, machine, new_folder, sequences
from tests.harness.temporal_thread import TEMPORAL


class Sequence(CommandSequence):
    """One table, files in a folder, runs that load them, and people who decide."""

    def __init__(self) -> None:
        super().__init__()
        self.driver: LakeDriver = type(self).new_driver()
        self.model = LakeModel()
        self.files: dict[str, Content] = {}
        self.next_id = 0
        self.waiting: dict[Handle, tuple[Paths[Content], Paths[Content]]] = {}
        """The files to load and the whole input, by run that waits for approval."""
        self.selected_at: dict[Handle | str, int] = {}
        """Number of runs that were published when the files of a waiting run or a quarantine were selected."""
        self.written_for: dict[Handle | str, int | None] = {}
        """Generation of the table that a waiting run or quarantine was written for, by run or branch; None if none."""

    # --- files arrive ---

    @initialize(size=st.integers(1, 3))
    def first_file(self, size: int) -> None:
        self._write(self._content(size, is_bad=False))

    @rule(size=st.integers(1, 3), is_bad=st.booleans())
    def add_file(self, size: int, is_bad: bool) -> None:
        self._write(self._content(size, is_bad=is_bad))

    @rule(data=st.data())
    def copy_file(self, data: st.DataObject) -> None:
        self._write(data.draw(st.sampled_from(list(self.files.values()))))

    @rule(data=st.data(), size=st.integers(1, 3))
    def replace_file(self, data: st.DataObject, size: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.files)))
        self._write(self._content(size, is_bad=False), name)

    # --- runs ---

    @rule()
    def run_pipeline(self) -> None:
        to_load = paths_of(self.model.to_load(self.files.values()), self._all)
        self._compare_run(self._run(self.driver.run(self.driver.pipeline())), to_load)

    @rule()
    def run_again_loads_all(self) -> None:
        to_load = paths_of(self.files.values(), self._all)
        self._compare_run(self._run(self.driver.run(self.driver.pipeline(), again=True)), to_load)

    @precondition(lambda self: len(self.waiting) < 2)
    @rule()
    def start_run_that_needs_approval(self) -> None:
        whole = self._all
        if any(_contents(whole) == _contents(other) for _, other in self.waiting.values()):
            return  # the same input is under way: a start would attach to that run
        to_load, selected_at = paths_of(self.model.to_load(_contents(whole)), whole), self.model.number
        started = self._run(self.driver.start(self.driver.pipeline(approval=True)))
        ended = started if isinstance(started, Ending) else self._run(self.driver.wait_for_approval(started))
        if ended is not None:
            assert not to_load or _has_bad(to_load), ended
            self._compare_run(ended, to_load)
            return
        assert to_load and not _has_bad(to_load)
        assert not isinstance(started, Ending)
        self.waiting[started] = (to_load, whole)
        self.written_for[started], self.selected_at[started] = self._generation, selected_at

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def approve(self, data: st.DataObject) -> None:
        handle = data.draw(st.sampled_from(list(self.waiting)))
        to_load, whole = self.waiting.pop(handle)
        was_replaced = self._was_replaced(handle) and self.driver.has_table()
        ended = self._run(self.driver.decide(handle, approve=True))
        if was_replaced:
            assert ended.outcome in ("failed", "quarantined"), ended
            self._keep(ended, to_load, handle)
            return
        if any(map(self.model.is_loaded, _contents(to_load))) or _was_rewritten(ended):
            # the run selects again, from its first files: a roll-back may have freed others
            to_load = paths_of(self.model.to_load(_contents(whole)), whole)
            if _contents(whole) != frozenset(self.files.values()) and ended.outcome in ("failed", "already published"):
                return  # one of its files was replaced
        self._compare_run(ended, to_load)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), cancel=st.booleans())
    def reject_or_cancel(self, data: st.DataObject, cancel: bool) -> None:
        handle = data.draw(st.sampled_from(list(self.waiting)))
        to_load, _ = self.waiting.pop(handle)
        ended = self._run(self.driver.cancel(handle) if cancel else self.driver.decide(handle, approve=False))
        assert ended.outcome == ("cancelled" if cancel else "quarantined"), ended
        self._keep(ended, to_load, handle)

    # --- quarantines, and roll-back ---

    @precondition(lambda self: self.model.quarantines)
    @rule(data=st.data(), way=st.sampled_from(["release", "release with a laxer check", "repair"]))
    def release(self, data: st.DataObject, way: str) -> None:
        branch = data.draw(st.sampled_from(sorted(self.model.quarantines)))
        paths = self.model.quarantines[branch]
        pipeline = self.driver.pipeline(strict=way != "release with a laxer check", approval="-approved" in branch)
        pipeline = pipeline.model_copy(update={"approval": None})
        repair = [f"UPDATE {self.driver.table} SET v = 0 WHERE v < 0"] if way == "repair" else []
        ended = self._run(self.driver.release(branch, pipeline, *repair))
        if any(map(self.model.is_loaded, _contents(paths))):
            assert ended.outcome in ("refused", "already published", "failed"), ended
            return
        if self._was_replaced(branch) or self.model.is_overtaken(paths, self.selected_at[branch]):
            assert ended.outcome in ("refused", "failed", "discarded"), ended
            return
        if way == "release" and _has_bad(paths):
            assert ended.outcome == "discarded", ended  # the quarantine stays unchanged
            return
        assert ended.outcome == "published" and ended.result, ended
        self.model.publish(ended.result.run_id, paths)
        del self.model.quarantines[branch]

    @precondition(lambda self: self.model.quarantines)
    @rule(data=st.data())
    def discard(self, data: st.DataObject) -> None:
        branch = data.draw(st.sampled_from(sorted(self.model.quarantines)))
        self._run(self.driver.discard(branch))
        del self.model.quarantines[branch]

    @precondition(lambda self: self.model.published)
    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        run_id = data.draw(st.sampled_from([run.run_id for run in self.model.published]))
        had_table = self.driver.has_table()
        ended = self._run(self.driver.roll_back(run_id))
        assert ended.outcome == "published", ended
        self.model.roll_back(run_id, drops_table=had_table and not self.driver.has_table())

    # --- another program ---

    @precondition(lambda self: self.driver.recreate and self.driver.has_table())
    @rule()
    def drop_and_create(self) -> None:
        """Another program drops the table and creates it again, empty."""
        assert self.driver.recreate
        self.driver.recreate(self.driver.table)
        self.model.drop()

    # --- what must hold after each command ---

    @invariant()
    def main_holds_what_the_model_holds(self) -> None:
        assert self.driver.rows() == self.model.rows

    @invariant()
    def no_branch_is_left(self) -> None:
        assert self.driver.quarantines() == set(self.model.quarantines)
        assert len(self.driver.branches_of_attempts()) == len(self.waiting)

    def teardown(self) -> None:
        for handle in self.waiting:
            self._run(self.driver.cancel(handle))

    def _compare_run(self, ended: Ending, to_load: Paths[Content]) -> None:
        """Compare the ending of a run with the model's expectation for the files that it was to load."""
        if not to_load:
            assert ended.outcome == "already published", ended
        elif _has_bad(to_load):
            assert ended.outcome == "quarantined", ended
            self._keep(ended, to_load)
        else:
            assert ended.outcome == "published" and ended.result, ended
            self.model.publish(ended.result.run_id, to_load)

    def _keep(self, ended: Ending, paths: Paths[Content], waiting: Handle | None = None) -> None:
        """Record a run's quarantine, with the table and the main that it was written for.

        Args:
            waiting: the run, if it waited for approval; None if it has selected its files just now.
        """
        if ended.result and (branch := ended.result.branch):
            self.model.quarantines[branch] = paths
            self.written_for[branch] = self.written_for[waiting] if waiting else self._generation
            self.selected_at[branch] = self.selected_at[waiting] if waiting else self.model.number

    @property
    def _generation(self) -> int | None:
        return self.model.generation if self.driver.has_table() else None

    def _was_replaced(self, key: Handle | str) -> bool:
        """Return True if rows written for one table would now go into another one, or a new one."""
        return self.written_for[key] not in (None, self.model.generation)

    @property
    def _all(self) -> Paths[Content]:
        return frozenset(self.files.items())

    def _content(self, size: int, *, is_bad: bool) -> Content:
        first, self.next_id = self.next_id, self.next_id + size
        return Content(tuple(range(first, first + size)), is_bad)

    def _write(self, content: Content, name: str = "") -> None:
        name = name or f"{len(self.files)}.csv"
        self.files[name] = content
        (self.driver.folder / name).write_text(content.csv)


def _contents(paths: Paths[Content]) -> frozenset[Content]:
    return frozenset(content for _, content in paths)


def _has_bad(paths: Paths[Content]) -> bool:
    return any(content.is_bad for content in _contents(paths))


def _was_rewritten(ended: Ending) -> bool:
    return ended.result is not None and any(each.resolved == "rewritten" for each in ended.result.conflicts)


def in_memory(system: MemorySystem, folder: Path) -> type[Sequence]:
    """Return the machine for a catalog in memory."""
    numbers = iter(range(10**6))

    def new_driver() -> LakeDriver:
        table = f"s{next(numbers)}"
        system.catalog.clear()
        files = new_folder(folder, table)
        driver = LakeDriver(system.client, system.settings, system.catalog, {}, f"t.{table}", files)
        driver.recreate = system.lake.recreate
        return driver

    return machine(Sequence, system.run, new_driver)


def on_spark(variables: dict[str, str], folder: Path) -> type[Sequence]:
    """Return the machine for Nessie, with Spark."""
    client, settings = TEMPORAL.run(TEMPORAL.client(variables)), read_settings(variables)

    def new_driver() -> LakeDriver:
        table = f"s{uuid.uuid4().hex[:12]}"
        return LakeDriver(client, settings, open_catalog(settings), {}, f"t.{table}", new_folder(folder, table))

    return machine(Sequence, TEMPORAL.run, new_driver)


def test_a_few_sequences_in_memory(memory: MemorySystem, tmp_path: Path) -> None:
    """Main has each row once after random sequences of files, runs, quarantines and roll-backs."""
    run_state_machine_as_test(in_memory(memory, tmp_path), settings=sequences(8, same=True))


@THOUSAND
@pytest.mark.matrix
@pytest.mark.timeout(7200)
def test_a_thousand_sequences_in_memory(memory: MemorySystem, tmp_path: Path, number: int) -> None:
    """The same with a thousand sequences, others each time."""
    run_state_machine_as_test(in_memory(memory, tmp_path), settings=sequences(number))


@pytest.mark.matrix
@pytest.mark.timeout(7200)
def test_thirty_sequences_on_spark(warm_stack: dict[str, str], tmp_path: Path) -> None:
    """The same on Nessie and Spark, with thirty sequences."""
    run_state_machine_as_test(on_spark(warm_stack, tmp_path), settings=sequences(30))
