"""A run that writes one table, activity by activity, on a catalog in memory and tables in a folder."""

from collections.abc import Sequence
from typing import Any

from activities.approval.require_approval import ApprovalPolicy
from activities.publishing.publish_branch import PublishBranchActivity
from activities.publishing.rebase_branch import RebaseBranchActivity
from activities.run.open_branch import OpenBranchActivity
from activities.run.verify_write import VerifyWriteActivity
from lakehouse.catalog import TableCommit
from sluice.contracts.existing_rows import RebaseBranchInput, RebaseResult
from sluice.contracts.publish import Publication
from sluice.contracts.references import BranchRef, RunRef
from sluice.contracts.write import JobReport, OpenBranchInput, VerifyWriteInput, WriteResult
from sluice.pipeline.scope import LoadScope
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write
from sluice.publishing.branch_properties import input_properties
from sluice.publishing.certificate import approved_properties
from sluice.publishing.commit_properties import ROLLED_BACK, RUN_ID
from tests.harness.activity import run_activity
from tests.harness.memory_lake import MemoryLake
from tests.harness.publish_input import publish_input

APPEND = Write.model_validate({"source": {"path": "/in.csv"}})


class Run:
    """One run that writes one table, activity by activity."""

    def __init__(self, lake: MemoryLake, run_id: str, table: str = "t.x") -> None:
        self.lake, self.catalog, self.table = lake, lake.catalog, table
        self.ref = RunRef(run_id=run_id, workflow_id=f"w-{run_id}", pipeline="p", label="p", attempt=1)

    def open(self, **more: Any) -> BranchRef:
        fields = {"tables": {self.table: Table()}, "schema_is_fixed": True, "input_digest": self.ref.run_id}
        input = OpenBranchInput.model_validate({"run_ref": self.ref, **fields, "again": False, **more})
        branch: BranchRef = run_activity(
            OpenBranchActivity(self.catalog, {}, "here", self.lake.loaded_files).open_branch, input
        )
        return branch

    def write(self, *ids: int) -> tuple[BranchRef, WriteResult]:
        branch = self.open()
        self.lake.append(branch.name, self.table, ids, self.ref)
        return branch, self.verify(branch)

    def verify(self, branch: BranchRef) -> WriteResult:
        input = VerifyWriteInput(run_ref=self.ref, branch=branch, write=APPEND, tables=[self.table], job=JobReport())
        result: WriteResult = run_activity(VerifyWriteActivity(self.catalog, {}).verify_write, input)
        return result

    def publish(self, branch: BranchRef, head: str, **main: Any) -> Publication:
        described = input_properties(self.ref.run_id, [self.table], scope=LoadScope(content=self.ref.partition))
        properties = {**approved_properties(self.ref, head, "", [], []), **described}
        input = publish_input(self.ref, branch, head, properties, **main)
        publish = PublishBranchActivity(self.catalog, ApprovalPolicy(self.catalog)).publish_branch
        publication: Publication = run_activity(publish, input)
        return publication

    def rebase(self, branch: BranchRef, written: WriteResult, write: Write = APPEND) -> RebaseResult:
        self.ref = self.ref.model_copy(update={"attempt": self.ref.attempt + 1})
        input = RebaseBranchInput(
            run_ref=self.ref, branch=branch, write_result=written, write=write, rows_quarantined=False
        )
        result: RebaseResult = run_activity(RebaseBranchActivity(self.catalog, {}, "here").rebase_branch, input)
        return result


def replace_table(lake: MemoryLake) -> None:
    """Drop the table on main, and create a new one of its name, as another program does."""
    lake.catalog.commit_tables("main", lake.catalog.head("main"), "drop", [TableCommit("t.x", None)])
    lake.append("main", "t.x", [9])


def write_rows(run: Run, *ids: int) -> tuple[BranchRef, str]:
    branch, written = run.write(*ids)
    return branch, written.head


def run_of(lake: MemoryLake, name: str, partition: str = "") -> Run:
    """Return a run of a partition."""
    run = Run(lake, name)
    run.ref = run.ref.model_copy(update={"partition": partition})
    return run


def load(lake: MemoryLake, name: str, partition: str = "", ids: Sequence[int] = (1,)) -> Run:
    """Publish rows, by a run of a partition."""
    run = run_of(lake, name, partition)
    branch, written = run.write(*ids)
    assert run.publish(branch, written.head).merged
    return run


def roll_back(lake: MemoryLake, *runs: str) -> None:
    """Publish the roll-back of runs."""
    properties = {ROLLED_BACK: ",".join(runs), RUN_ID: f"back-{runs[0]}"}
    lake.catalog.commit_tables("main", lake.catalog.head("main"), "roll back", properties=properties)
