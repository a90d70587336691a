"""Random sequences of loads with quarantined rows, and of requeues of these rows, compared with a model of main.

Rows have the number of their load as their value, so that no value on main may be replaced by a lower one. Each load is
new content of one of two paths. The sequences need no server: they call the activities that open and publish a branch,
and write as Spark would.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from temporalio.exceptions import ApplicationError

from lakehouse.catalog import TableCommit, TableVersion
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.references import BranchRef
from sluice.input.manifest import InputManifest, ManifestFile, ManifestHeader
from sluice.pipeline.loading_rules import rule_of
from sluice.pipeline.write import Write
from sluice.publishing.branch_properties import input_properties
from sluice.publishing.commit_properties import ROLLED_BACK, RUN_ID, WORKFLOW_ID
from sluice.publishing.load_properties import requeue_properties
from sluice.publishing.quarantine_tables import quarantine_table
from tests.harness.branch_run import Run
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake
from tests.harness.sequences import new_folder, one_of, sequences

TABLE = "t.x"
KEYS = (1, 2, 3)
MODES = ("append", "merge")
PATHS = ("/a.csv", "/b.csv")
Rows = dict[int, int]
"""The values of rows, by key."""
Change = tuple[str, frozenset[str], str]
"""A change of the table: its run, the runs whose rows it requeued, and the path of its file."""


class RequeueSequence(RuleBasedStateMachine):
    """Loads whose bad rows go to a quarantine table, and people who requeue them."""

    folder: ClassVar[Path]
    numbers: ClassVar[int] = 0

    @initialize(mode=one_of(lambda: MODES))
    def new_table(self, mode: str) -> None:
        type(self).numbers += 1
        self.mode, self.runs = mode, 0
        self.lake = MemoryLake(MemoryCatalog(), new_folder(self.folder, str(self.numbers)), ("id", "v"))
        self.lake.catalog.initialize_main()
        self.main: list[tuple[int, int]] = []
        """The rows of main, by the model."""
        self.quarantined: dict[str, Rows] = {}
        """The rows of the quarantine table, by run."""
        self.changes: list[Change] = []
        """The changes of the table that are in effect, oldest first."""
        self.before: list[tuple[list[tuple[int, int]], dict[str, Rows], TableVersion | None]] = []
        """The model and the version of the table before each of the changes."""

    @rule(
        good=st.sets(st.sampled_from(KEYS), min_size=1),
        bad=st.sets(st.sampled_from(KEYS)),
        path=one_of(lambda: PATHS),
    )
    def loads(self, good: set[int], bad: set[int], path: str) -> None:
        """Publish a run that loads new content of a path, and whose bad rows go to the quarantine table."""
        run = self._new_run()
        branch = run.open(write=self._write)
        self._change(run, branch, dict.fromkeys(good, self.runs), path=path)
        self.quarantined[run.ref.run_id] = dict.fromkeys(bad - good, self.runs)

    @precondition(lambda self: any(self.quarantined.values()))
    @rule(data=st.data(), is_all=st.booleans(), over_younger=st.booleans(), is_bad=st.booleans())
    def requeues(self, data: st.DataObject, is_all: bool, over_younger: bool, is_bad: bool) -> None:
        """Requeue some rows of one run, or all rows of all runs. One row may still be bad, and is quarantined again."""
        having = [run for run, rows in self.quarantined.items() if rows]
        runs = having if is_all else [data.draw(st.sampled_from(having))]
        every = [each for run in runs for each in self.quarantined[run].items()]
        rows = dict(every if is_all else data.draw(st.lists(st.sampled_from(every), min_size=1, unique=True)))
        if self.mode == "merge" and len({key for key, _ in every}) < len(every):
            return  # the SQL of the requeue refuses two rows of one key
        self._requeue(runs, rows, over_younger=over_younger, bad=dict([rows.popitem()]) if is_bad else {})

    @precondition(lambda self: any(self.quarantined.values()))
    @rule(data=st.data())
    def loads_while_a_requeue_waits(self, data: st.DataObject) -> None:
        """Publish a run after a requeue wrote its rows, and before that requeue is published."""
        source = data.draw(st.sampled_from([run for run, rows in self.quarantined.items() if rows]))
        rows, order = dict(self.quarantined[source]), self._order([source])
        requeue = self._new_run()
        if self._is_refused([source]):
            return
        branch = requeue.open(write=self._requeueing, order=order, tables=self._tables, schema_is_fixed=False)
        self._write_rows(requeue, branch, rows)
        self.loads({*KEYS}, set(), data.draw(st.sampled_from(PATHS)))
        merged = requeue.publish(branch, self.lake.catalog.head(branch.name)).merged
        assert not merged, "a requeue was published over a run that was published meanwhile"
        self.lake.catalog.delete_branch(branch.name)
        self._requeue([source], rows, over_younger=False)

    @precondition(lambda self: self.changes)
    @rule(data=st.data())
    def rolls_back(self, data: st.DataObject) -> None:
        """Roll back a run or a requeue, and all later ones."""
        first = data.draw(st.integers(0, len(self.changes) - 1))
        self.runs += 1
        undone = ",".join(run for run, *_ in self.changes[first:])
        properties = {ROLLED_BACK: undone, RUN_ID: f"r{self.runs}", WORKFLOW_ID: f"w-r{self.runs}"}
        self.main, self.quarantined, version = self.before[first]
        restored = [TableCommit(TABLE, version)]
        self.lake.catalog.commit_tables("main", self.lake.catalog.head("main"), "roll back", restored, properties)
        del self.changes[first:], self.before[first:]

    @invariant()
    def main_holds_what_the_model_holds(self) -> None:
        rows = self.lake.rows(TABLE)
        assert sorted((row["id"], row["v"]) for row in rows) == sorted(self.main)

    def _requeue(self, runs: Sequence[str], rows: Rows, *, over_younger: bool, bad: Rows | None = None) -> None:
        """Requeue rows, and compare the ending with the expected one.

        Args:
            bad: further rows that are requeued, and return to the quarantine table as rows of the requeue.
        """
        order, run = self._order(runs, over_younger=over_younger), self._new_run()
        is_refused = self._is_refused(runs) and not over_younger
        try:
            branch = run.open(write=self._requeueing, order=order, tables=self._tables, schema_is_fixed=False)
        except ApplicationError as error:
            assert is_refused and "--over-younger" in str(error), error
            return
        if self.mode == "merge" and not over_younger:
            older = [key for key, value in self.main if rows.get(key, value) < value]
            assert not older, f"the requeue of {runs} replaces younger rows with the keys {older}"
        assert not is_refused, f"the requeue of {runs} is not refused after {self.changes}"
        self._change(run, branch, rows, requeued=runs)
        moved = {**rows, **(bad or {})}
        for each in runs:
            self.quarantined[each] = {k: v for k, v in self.quarantined[each].items() if moved.get(k) != v}
        self.quarantined[run.ref.run_id] = bad or {}

    def _is_refused(self, runs: Sequence[str]) -> bool:
        """Return True if rows that are requeued may be older than those of the table, or there already.

        In `mode: merge`, a run changed the table after the first of these runs, other than by requeueing their rows. In
        `mode: append`, a run loaded other content of one of their paths after them. The runs include those whose rows
        they requeued.
        """
        traced = {*runs}
        for run, requeued, _ in reversed(self.changes):
            traced |= requeued if run in traced else frozenset()
        own = [number for number, (run, *_) in enumerate(self.changes) if run in traced]
        if self.mode == "merge":
            later = [requeued for _, requeued, _ in self.changes[min(own) + 1 :]]
            return any(not requeued or not requeued <= traced for requeued in later)
        paths = [path for *_, path in self.changes]
        return any(paths[number] and paths[number] in paths[number + 1 :] for number in own)

    def _change(self, run: Run, branch: BranchRef, rows: Rows, requeued: Sequence[str] = (), path: str = "") -> None:
        """Write rows to a branch, publish it, and record the change."""
        before = self.lake.catalog.table_version("main", TABLE)
        quarantined = {each: dict(of_run) for each, of_run in self.quarantined.items()}
        self.before.append((list(self.main), quarantined, before))
        self._write_rows(run, branch, rows)
        ids = {RUN_ID: run.ref.run_id, WORKFLOW_ID: run.ref.workflow_id}
        properties = {**ids, **requeue_properties(self._order(requeued)), **self._input(run, path)}
        self.lake.catalog.publish(branch, self.lake.catalog.head(branch.name), "ana", "publish", properties)
        self.lake.catalog.delete_branch(branch.name)
        kept = [(key, value) for key, value in self.main if self.mode == "append" or key not in rows]
        self.main = [*kept, *rows.items()]
        self.changes.append((run.ref.run_id, frozenset(requeued), path))

    def _input(self, run: Run, path: str) -> dict[str, str]:
        """Return the properties that name the file of a run; none without a path."""
        if not path:
            return {}
        ids = {"run_id": run.ref.run_id, "workflow_id": run.ref.workflow_id, "pipeline": "p"}
        header = {**ids, "attempt": 1, "base": "0", "tables": [TABLE], "policy": "skip", "again": False}
        file = ManifestFile(path=path, size=1, identity=run.ref.run_id)
        manifest = InputManifest(header=ManifestHeader.model_validate({**header, "input_digest": "d"}), files=[file])
        return input_properties("d", [TABLE], self.lake.manifests.write(manifest))

    def _write_rows(self, run: Run, branch: BranchRef, rows: Rows) -> None:
        new = [{"id": key, "v": value} for key, value in rows.items()]
        if self.mode == "append":
            self.lake.append_rows(branch.name, TABLE, new, run.ref)
        else:
            kept = [row for row in self.lake.rows(TABLE, branch.name) if row["id"] not in rows]
            self.lake.replace_rows(branch.name, TABLE, [*kept, *new], run.ref)

    def _order(self, runs: Sequence[str], *, over_younger: bool = False) -> LoadOrder:
        """Return the order of a requeue, as its plan states it."""
        field = "runs" if rule_of("requeue", self._write, [TABLE]).guard == "later run" else "files_of_runs"
        return LoadOrder.model_validate({field: list(runs), "over_younger": over_younger})

    def _new_run(self) -> Run:
        self.runs += 1
        return Run(self.lake, f"r{self.runs}")

    @property
    def _write(self) -> Write:
        keys = {"keys": ["id"]} if self.mode == "merge" else {}
        return Write.model_validate({"mode": self.mode, "source": {"path": "/in.csv"}, **keys})

    @property
    def _requeueing(self) -> Write:
        return Write(mode="requeue", statements=["DELETE FROM t.x__quarantine"], keys=self._write.keys)

    @property
    def _tables(self) -> dict[str, dict[str, str]]:
        return {TABLE: {}, quarantine_table(TABLE): {}}


def requeues_in_memory(_: object, folder: Path) -> type[RequeueSequence]:
    """Return the machine for catalogs in memory, with its tables below a folder. It needs no system."""
    return type("RequeueSequence", (RequeueSequence,), {"folder": folder})


def test_requeues_replace_no_younger_rows(tmp_path: Path) -> None:
    """Main has the rows of the model, and each requeue that the model refuses is refused."""
    run_state_machine_as_test(requeues_in_memory(None, tmp_path), settings=sequences(20, same=True))


@pytest.mark.matrix
@pytest.mark.timeout(7200)
def test_a_thousand_sequences_of_requeues(tmp_path: Path) -> None:
    """The same with a thousand sequences, others each time."""
    run_state_machine_as_test(requeues_in_memory(None, tmp_path), settings=sequences(1000))
