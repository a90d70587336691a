"""Conflicts with programs that changed main of a table in the catalog `iceberg`: what is added, and what is redone."""

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from temporalio.testing import ActivityEnvironment

from activities.rebase_branch import RebaseBranchActivity
from activities.verify_write import VerifyWriteActivity
from lakehouse.iceberg_catalog.connect import open_iceberg
from sluice.contracts.existing_rows import RebaseBranchInput, RebaseResult
from sluice.contracts.references import BranchRef, RunRef
from sluice.contracts.write import JobReport, VerifyWriteInput, WriteResult
from sluice.pipeline.write import Write
from sluice.publishing.certificate import marks
from tests.harness.iceberg_lake import IcebergLake, WriterJob, ids

PROGRAM = Write.model_validate({"job": "job.py"})
"""A write that may have read what main held."""


class Run:
    """A run whose job changes the table `t` of a lake, beside which main of it is compacted."""

    def __init__(self, lake: IcebergLake, folder: Path) -> None:
        self.lake, self._job = lake, WriterJob(lake, folder / "jobs")
        self.ref = RunRef(run_id="r1", workflow_id="w1", pipeline="p", label="p", attempt=1)

    def append(self, *numbers: int) -> None:
        self.table.append(ids(*numbers), snapshot_properties=marks(self.ref))

    @property
    def table(self) -> Any:
        return self._job.open().load_table(self.lake.name("t"))

    def record(self) -> tuple[BranchRef, WriteResult]:
        self._job.record()
        name = self.lake.name("t")
        input = VerifyWriteInput(
            run_ref=self.ref, branch=self._job.branch, write=PROGRAM, tables=[name], job=JobReport()
        )
        written = ActivityEnvironment().run(VerifyWriteActivity(self.lake.catalog, {}).verify_write, input)
        return self._job.branch, written

    def rebase(self, written: tuple[BranchRef, WriteResult], write: Write = PROGRAM, *moved: str) -> RebaseResult:
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
        return ActivityEnvironment().run(RebaseBranchActivity(self.lake.catalog, {}, "here").rebase_branch, input)


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = open_iceberg("lake", "sql", uri, tmp_path.as_uri(), {})
    return IcebergLake(catalog, SqlCatalog("lake", uri=uri, warehouse=tmp_path.as_uri()), "t", "read")


@pytest.fixture
def run(lake: IcebergLake, tmp_path: Path) -> Run:
    return Run(lake, tmp_path)


def test_an_append_is_added_to_what_another_program_appended(lake: IcebergLake, run: Run) -> None:
    run.append(3)
    written = run.record()
    lake.append("t", 9)
    rebased = run.rebase(written, Write.model_validate({"source": {"path": "/in.csv"}}))
    assert rebased.branch and rebased.write_result
    assert lake.publish(rebased.branch, rebased.write_result.head).merged and lake.rows("t") == [1, 2, 3, 9]
