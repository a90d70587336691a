"""Rebase what an attempt wrote onto main as it is now, without Spark and without copying a row."""

from dataclasses import dataclass

from temporalio import activity

from activities.attempt_branch import AttemptBranch
from activities.errors import as_application_error
from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.rebase import read_rebase
from lakehouse.iceberg.table_state import read_written_table
from sluice.contracts.existing_rows import RebaseBranchInput, RebaseResult
from sluice.contracts.references import BranchRef
from sluice.contracts.write import WriteResult
from sluice.publishing.certificate import marks
from sluice.publishing.rebase import rebase_problem
from sluice.publishing.written_tables import check_rebased


@dataclass(frozen=True)
class RebaseBranchActivity:
    """The activity `rebase_branch`.

    Needs the catalog, the properties by which Iceberg reads the lake, and the installation of these runs.
    """

    catalog: BranchCatalog
    io: dict[str, str]
    installation: str

    @activity.defn(name="rebase_branch")
    def rebase_branch(self, input: RebaseBranchInput) -> RebaseResult:
        """Create the branch of a new attempt that holds, by one commit, what an earlier one wrote."""
        with as_application_error():
            self.catalog.check_identity(input.branch.catalog_id)
            attempt = AttemptBranch(self.catalog, self.installation, input.run_ref.branch)
            if not attempt.is_created and (problem := self._rebase(input, attempt)):
                return RebaseResult(why_not=problem)
            branch = attempt.ref(input.branch.catalog_id)
            return RebaseResult(branch=branch, write_result=self._read_back(input, branch))

    def _rebase(self, input: RebaseBranchInput, attempt: AttemptBranch) -> str:
        """Commit the rebased tables to the new branch, or return why they cannot be rebased."""
        diffs = self.catalog.diff(input.branch.base, input.branch.name, input.write_result.head)
        tables = [read_rebase(self.catalog, self.io, diff, attempt.base) for diff in diffs]
        problem = rebase_problem(
            tables,
            appends=input.write.rebases,
            rows_quarantined=input.rows_quarantined,
            catalog_properties=self.catalog.capabilities.own_table_properties,
        )
        if not problem:
            commits = [table.commit(marks(input.run_ref)) for table in tables]
            attempt.create(input.run_ref, f"Rebase {input.branch.name}", commits)
        return problem

    def _read_back(self, input: RebaseBranchInput, branch: BranchRef) -> WriteResult:
        """Make sure that the new branch holds exactly what the earlier attempt wrote, and pin the hash that does."""
        head = self.catalog.head(branch.name)
        attempts = range(1, input.run_ref.attempt + 1)
        tables = [
            read_written_table(diff, diff.before, self.io, input.run_ref.run_id, attempts)
            for diff in self.catalog.diff(branch.base, branch.name, head)
        ]
        return WriteResult(head=head, tables=check_rebased(branch.name, input.branch.name, input.write_result, tables))
