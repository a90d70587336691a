"""The changes of a run to a table are read from its live files. Changes of the table's history are refused."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pyarrow as pa
import pytest
from pyiceberg.expressions import EqualTo
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Operation, Summary
from temporalio.exceptions import ApplicationError

from activities.run.open_branch import OpenBranchActivity
from activities.run.verify_write import VerifyWriteActivity
from lakehouse.audit.audited_tables import audited_table
from lakehouse.catalog import TableCommit, TableVersion
from lakehouse.iceberg.table_state import TableState
from sluice.audit.planner import plan_table
from sluice.audit.tables import AuditedTable
from sluice.checks.registry import REGISTRY
from sluice.contracts.references import BranchRef, RunRef
from sluice.contracts.table_changes import TableChange
from sluice.contracts.write import JobReport, OpenBranchInput, VerifyWriteInput, WriteResult
from sluice.identifiers import joined_name, name_elements, namespaces_of
from sluice.metadata.statistics import ChangeStatistics, TableStatistics
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write
from sluice.publishing.branch_properties import marks
from sluice.publishing.commit_properties import ATTEMPT, RUN_ID
from tests.harness.activity import run_activity
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake

TABLE = "t.x"
RUN = RunRef(run_id="r", workflow_id="w", pipeline="p", label="p", attempt=1)
EARLIER = RUN.model_copy(update={"run_id": "earlier"})
UNSAFE = {"write.metadata.delete-after-commit.enabled": "true"}


class Branch:
    """An attempt on a table whose main has the rows 1, 2 and 3, in two files."""

    def __init__(self, folder: Path) -> None:
        self.catalog = MemoryCatalog()
        self.lake = MemoryLake(self.catalog, folder)
        self.catalog.initialize_main()
        self.lake.append("main", TABLE, [1, 2], EARLIER)
        self.lake.append("main", TABLE, [3], EARLIER)
        self.ref = BranchRef(name=RUN.branch, base=self.catalog.head("main"), catalog_id=self.catalog.identity())
        self.catalog.create_branch(self.ref.name, self.ref.base)

    def append(self, *ids: int) -> None:
        self.lake.append(self.ref.name, TABLE, ids, RUN)

    def change(self, change: Callable[[IcebergTable], Any]) -> None:
        self.lake.change(self.ref.name, TABLE, change)

    def version(self, branch: str = "") -> TableVersion:
        version = self.catalog.table_version(branch or self.ref.name, TABLE)
        assert version
        return version

    def point(self, version: TableVersion) -> None:
        self.lake.point(self.ref.name, TABLE, version)

    def state(self) -> TableState:
        return TableState.load(self.version(), self.version("main"), {})

    def verify(self, **more: Any) -> WriteResult:
        write = Write.model_validate({"mode": "sql", "statements": ["DELETE FROM t.x"]})
        input = VerifyWriteInput.model_validate(
            {"run_ref": RUN, "branch": self.ref, "write": write, "tables": [TABLE], "job": JobReport(), **more}
        )
        result: WriteResult = run_activity(VerifyWriteActivity(self.catalog, {}).verify_write, input)
        return result

    def verdict(self, check: str, **parameters: Any) -> tuple[str, Any]:
        checks = [REGISTRY[check].model_validate({"check": check, **parameters})]
        table = audited_table(TABLE, checks, self.state(), {}, changed_tables=[TABLE])
        (result,) = plan_table(table, {}, lambda *_: []).decided
        return result.verdict, result.observed


@pytest.fixture
def branch(tmp_path: Path) -> Branch:
    return Branch(tmp_path)


def _rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def test_a_run_that_only_appends(branch: Branch) -> None:
    branch.append(4, 5)
    change = branch.verify().tables[TABLE]
    assert (change.operation, change.added_rows, change.deleted_rows, change.added_files) == ("append", 2, 0, 1)
    assert change.total_rows == 5 and change.added_bytes > 0
    assert branch.verdict("append_only") == ("pass", "append")


def test_rows_that_a_run_adds_and_removes_itself_do_not_count(branch: Branch) -> None:
    branch.append(4)
    branch.change(lambda table: table.delete(EqualTo(term="id", value=4), snapshot_properties=marks(RUN)))
    branch.append(5)
    change = branch.verify().tables[TABLE]
    assert (change.added_rows, change.deleted_rows) == (1, 0)


def test_a_removed_row_counts_without_a_summary(branch: Branch) -> None:
    """`createOrReplace` writes a snapshot whose summary does not mention the removed rows."""
    branch.change(lambda table: table.overwrite(_rows(9), snapshot_properties=marks(RUN)))
    version = branch.version()
    metadata = branch.state().table.metadata
    silent = Summary(Operation.APPEND, **marks(RUN))
    made = {each.snapshot_id for each in branch.state().snapshots}
    snapshots = [
        each.model_copy(update={"summary": silent}) if each.snapshot_id in made else each for each in metadata.snapshots
    ]
    branch.point(branch.lake.rewrite(version, snapshots=snapshots))
    change = branch.verify().tables[TABLE]
    assert (change.added_rows, change.deleted_rows) == (1, 3)
    assert branch.verdict("deleted_rows", max=0) == ("fail", 3)
    assert branch.verdict("deleted_rows", max=3)[0] == "pass"
    assert branch.verdict("append_only")[0] == "fail"


def test_files_of_a_snapshot_that_the_job_expired_are_still_added_files(branch: Branch) -> None:
    branch.append(4)
    first = branch.version().snapshot_id
    branch.append(5)
    assert first
    branch.change(lambda table: table.maintenance.expire_snapshots().by_ids([first]).commit())
    assert branch.verify().tables[TABLE].added_rows == 2
    assert len(list(branch.state().entries(added_only=True))) == 2


def _expire_main(branch: Branch) -> None:
    branch.append(4)
    old = branch.version("main").snapshot_id
    assert old
    branch.change(lambda table: table.maintenance.expire_snapshots().by_ids([old]).commit())


def _set_back(branch: Branch) -> None:
    first = branch.state().table.metadata.snapshots[0].snapshot_id
    branch.point(TableVersion(branch.version().metadata_location, first))


def _recreate(branch: Branch) -> None:
    branch.lake.append("main", "t.other", [1], RUN)
    other = branch.catalog.table_version("main", "t.other")
    assert other
    branch.point(other)


def _properties(**properties: str) -> Callable[[Branch], None]:
    def change(branch: Branch) -> None:
        branch.append(4)
        branch.change(lambda table: table.transaction().set_properties(properties).commit_transaction())

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_expire_main, r"expired 1 snapshots of t\.x that main contains"),
        (_set_back, r"rolled t\.x back to a snapshot from before the run"),
        (_recreate, r"dropped t\.x and created it again"),
        (lambda branch: branch.change(_tag), r"changed branches or tags inside t\.x \(mine\)"),
        (_properties(**UNSAFE), "has write.metadata.delete-after-commit.enabled on the branch"),
        (_properties(**{"gc.enabled": "TRUE"}), "has gc.enabled on the branch"),
        (_properties(**{"history.expire.max-snapshot-age-ms": "1"}), "has history.expire.max-snapshot-age-ms"),
    ],
)
def test_a_write_that_touches_the_past_of_a_table_is_refused(
    branch: Branch, change: Callable[[Branch], None], words: str
) -> None:
    change(branch)
    with pytest.raises(ApplicationError, match=words) as refused:
        branch.verify()
    assert refused.value.type == "UnexpectedWrite"


def _tag(table: IcebergTable) -> None:
    snapshot = table.current_snapshot()
    assert snapshot
    table.manage_snapshots().create_tag(snapshot.snapshot_id, "mine").commit()


def test_a_snapshot_of_another_writer_beside_the_main_line_is_noticed(branch: Branch) -> None:
    branch.lake.append(branch.ref.name, TABLE, [7], EARLIER)
    stranger = branch.version().snapshot_id
    metadata = branch.state().table.metadata
    branch.point(TableVersion(branch.version().metadata_location, branch.version("main").snapshot_id))
    assert stranger in branch.state().unmarked([(RUN.run_id, [1])])
    assert stranger in {each.snapshot_id for each in metadata.snapshots}


def test_the_snapshots_of_a_table_are_read_once_however_many_runs_made_them() -> None:
    """A joint publish of thousands of partitions has as many runs as snapshots."""
    runs = [f"r{number}" for number in range(50)]
    summaries = [SimpleNamespace(additional_properties={RUN_ID: run, ATTEMPT: "2"}) for run in [*runs, "alien"]]
    snapshots = [SimpleNamespace(snapshot_id=number, summary=each) for number, each in enumerate(summaries)]
    read = Mock(return_value=snapshots)
    state = TableState(cast(Any, SimpleNamespace(snapshots=read)), None)
    assert state.unmarked([(run, range(1, 3)) for run in runs]) == [50]
    assert read.call_count == 1


def test_properties_that_are_safe_may_be_set(branch: Branch) -> None:
    _properties(**{"gc.enabled": "false", "write.target-file-size-bytes": "1000000"})(branch)
    assert branch.verify().tables[TABLE].added_rows == 1


def test_a_table_with_unsafe_properties_is_refused_at_opening_unless_the_run_mends_it(branch: Branch) -> None:
    branch.lake.change("main", TABLE, lambda table: table.transaction().set_properties(UNSAFE).commit_transaction())
    fields = {"tables": {TABLE: Table()}, "schema_is_fixed": False, "input_digest": "d", "again": False}
    other = RUN.model_copy(update={"run_id": "s"})
    input = OpenBranchInput.model_validate({"run_ref": other, **fields})
    activity = OpenBranchActivity(branch.catalog, {}, "here", branch.lake.loaded_files).open_branch
    words = r"t\.x on main has write\..*=true.* ALTER TABLE t\.x SET TBLPROPERTIES"
    with pytest.raises(ApplicationError, match=words) as refused:
        run_activity(activity, input)
    assert refused.value.type == "InvalidPipeline"
    assert run_activity(activity, input.model_copy(update={"tables_made_safe": [TABLE]})).name


def test_our_own_commits_delete_no_metadata_file(branch: Branch) -> None:
    unsafe = {**UNSAFE, "write.metadata.previous-versions-max": "1"}
    branch.lake.change("main", TABLE, lambda table: table.transaction().set_properties(unsafe).commit_transaction())
    before = Path(branch.version("main").metadata_location.removeprefix("file://"))
    branch.catalog.create_branch("wap/other", branch.catalog.head("main"))
    for number in range(3):
        branch.lake.append("wap/other", TABLE, [number], RUN)
    assert before.exists()


def test_the_last_step_is_told_from_the_write_before_it(branch: Branch) -> None:
    """In row quarantine, the rows removed from the table are those added to the quarantine table, and the run's own."""
    branch.append(4, 5, 6)
    since = branch.verify().head
    branch.lake.append(branch.ref.name, "t.x__quarantine", [5], RUN)
    branch.change(lambda table: table.delete(EqualTo(term="id", value=5), snapshot_properties=marks(RUN)))
    result = branch.verify(since=since, quarantined_rows={TABLE: 1})
    assert result.tables[TABLE] == TableChange.model_validate(
        {**result.tables[TABLE].model_dump(), "added_rows": 2, "deleted_rows": 0, "total_rows": 5}
    )
    with pytest.raises(ApplicationError, match=r"2 bad rows of t\.x were quarantined, and t\.x__quarantine got 1"):
        branch.verify(since=since, quarantined_rows={TABLE: 2})


def test_a_step_after_a_row_quarantine_changes_the_table_alone(branch: Branch) -> None:
    """In an earlier version, the repair of a quarantine whose run had moved bad rows always failed."""
    branch.append(4, 5, 6)
    branch.lake.append(branch.ref.name, "t.x__quarantine", [7], RUN)
    since = branch.catalog.head(branch.ref.name)
    branch.change(lambda table: table.delete(EqualTo(term="id", value=5), snapshot_properties=marks(RUN)))
    assert branch.verify(since=since, repairs=True).tables.keys() == {TABLE, "t.x__quarantine"}
    branch.lake.append(branch.ref.name, "t.x__quarantine", [8], RUN)
    with pytest.raises(ApplicationError, match=r"changed t\.x__quarantine, which the pipeline does not name"):
        branch.verify(since=since, repairs=True)


def test_a_row_quarantine_that_takes_a_row_of_main_is_refused(branch: Branch) -> None:
    branch.append(4, 5, 6)
    since = branch.verify().head
    branch.lake.append(branch.ref.name, "t.x__quarantine", [1], RUN)
    branch.change(lambda table: table.delete(EqualTo(term="id", value=1), snapshot_properties=marks(RUN)))
    with pytest.raises(ApplicationError, match=r"removed rows of t\.x that this run did not bring"):
        branch.verify(since=since, quarantined_rows={TABLE: 1})


def test_a_row_quarantine_that_loses_a_row_is_refused(branch: Branch) -> None:
    branch.append(4)
    branch.append(5)
    since = branch.verify().head
    branch.lake.append(branch.ref.name, "t.x__quarantine", [5], RUN)
    branch.change(lambda table: table.delete(EqualTo(term="id", value=4), snapshot_properties=marks(RUN)))
    branch.change(lambda table: table.delete(EqualTo(term="id", value=5), snapshot_properties=marks(RUN)))
    with pytest.raises(ApplicationError, match=r"1 bad rows of t\.x were quarantined, and 2 left it"):
        branch.verify(since=since, quarantined_rows={TABLE: 1})


@pytest.mark.parametrize(
    ("elements", "properties", "words"),
    [
        (("mine",), {}, "created the namespace mine, in which the pipeline has no table"),
        (("t",), {"location": "/tmp"}, "changed properties of the namespace t"),
        (("t",), None, "dropped the namespace t"),
        (("t.u",), {}, "created the namespace `t.u`"),
    ],
)
def test_a_write_that_changes_a_namespace_is_refused(
    branch: Branch, elements: tuple[str, ...], properties: dict[str, str] | None, words: str
) -> None:
    branch.append(4)
    branch.catalog.set_namespace(branch.ref.name, elements, properties)
    with pytest.raises(ApplicationError, match=words):
        branch.verify()


@pytest.mark.parametrize("key", [("t.x",), ("`t`", "x"), ("", "t", "x"), ("t", "x`")])
def test_a_table_with_a_name_that_reads_like_another_is_refused(branch: Branch, key: tuple[str, ...]) -> None:
    branch.append(4)
    name = joined_name(key)
    branch.catalog.commit_tables(
        branch.ref.name, branch.catalog.head(branch.ref.name), "m", [TableCommit(name, branch.version())]
    )
    with pytest.raises(ApplicationError, match=r"changed .*, which the pipeline does not name"):
        branch.verify()


def test_every_key_has_a_name_of_its_own() -> None:
    parts = ["a", "b", "a.b", "`", "``", ".", "", "a`b", "`a`.b", " "]
    keys = [key for size in (1, 2, 3) for key in product(parts, repeat=size)]
    names = [joined_name(key) for key in keys]
    assert len(set(names)) == len(keys)
    assert all(tuple(name_elements(name)) == key for name, key in zip(names, keys, strict=True))
    assert namespaces_of("a.`b.c`.d") == [("a",), ("a", "b.c")]


def test_equality_deletes_are_an_error_and_not_a_pass() -> None:
    checks = [REGISTRY["deleted_rows"].model_validate({"check": "deleted_rows", "max": 1000})]
    checks.append(REGISTRY["append_only"].model_validate({"check": "append_only"}))
    change = ChangeStatistics(operations=("append",), deletes_by_value=True)
    table = AuditedTable(TABLE, checks, TableStatistics(types={}, added=[], change=change))
    verdicts = plan_table(table, {}, lambda *_: []).decided
    assert [each.verdict for each in verdicts] == ["error", "fail"]
    assert "how many rows they delete is not known" in (verdicts[0].message or "")
