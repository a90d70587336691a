"""A run that writes a table of a lake, activity by activity, while other programs change main."""

from pathlib import Path

from pyiceberg.table import Table

from activities.publishing.rebase_branch import RebaseBranchActivity
from activities.run.verify_write import VerifyWriteActivity
from sluice.contracts.existing_rows import RebaseBranchInput, RebaseResult
from sluice.contracts.references import BranchRef, RunRef
from sluice.contracts.write import JobReport, VerifyWriteInput, WriteResult
from sluice.pipeline.write import Write
from sluice.publishing.branch_properties import marks
from tests.harness.activity import run_activity
from tests.harness.iceberg_lake import IcebergLake, WriterJob, ids

PROGRAM = Write.model_validate({"job": "job.py"})
"""A write that may have read rows of main."""


class IcebergRun:
    """A run whose job changes the table `t` of a lake."""

    def __init__(self, lake: IcebergLake, folder: Path) -> None:
        self.lake, self._job = lake, WriterJob(lake, folder / "jobs")
        self.ref = RunRef(run_id="r1", workflow_id="w1", pipeline="p", label="p", attempt=1)

    def append(self, *numbers: int) -> None:
        """Append rows on the branch."""
        self.table.append(ids(*numbers), snapshot_properties=marks(self.ref))

    def delete(self, number: int) -> None:
        """Delete a row on the branch."""
        self.table.delete(f"id = {number}", snapshot_properties=marks(self.ref))

    @property
    def table(self) -> Table:
        """The table as the job sees it."""
        return self._job.open().load_table(self.lake.name("t"))

    def record(self) -> tuple[BranchRef, WriteResult]:
        """Record and verify the writes of the job; return the branch and its content."""
        self._job.record()
        name = self.lake.name("t")
        input = VerifyWriteInput(
            run_ref=self.ref, branch=self._job.branch, write=PROGRAM, tables=[name], job=JobReport()
        )
        written: WriteResult = run_activity(VerifyWriteActivity(self.lake.catalog, {}).verify_write, input)
        return self._job.branch, written

    def rebase(self, written: tuple[BranchRef, WriteResult], write: Write = PROGRAM, *moved: str) -> RebaseResult:
        """Delete the branch, and rebase the run's files onto the head of main.

        Args:
            moved: tables that main changed, in addition to those of the run.
        """
        branch, result = written
        self.lake.catalog.delete_branch(branch.name)
        input = RebaseBranchInput(
            run_ref=self.ref.model_copy(update={"attempt": 2}),
            branch=branch,
            write_result=result,
            write=write,
            rows_quarantined=False,
            conflicts=[*moved],
        )
        rebased: RebaseResult = run_activity(RebaseBranchActivity(self.lake.catalog, {}, "here").rebase_branch, input)
        return rebased
