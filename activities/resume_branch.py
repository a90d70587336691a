"""Bring the rows of a quarantined branch onto the branch of an attempt."""

from dataclasses import dataclass

from temporalio import activity

from activities.attempt_branch import AttemptBranch
from activities.errors import as_application_error
from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.rebase import read_rebase
from lakehouse.iceberg.table_state import TableState
from sluice.contracts.existing_rows import ExistingRowsResult, ResumeBranchInput
from sluice.contracts.write import WriteResult
from sluice.errors import InvalidInput
from sluice.publishing.capabilities import require_capabilities
from sluice.publishing.certificate import marks
from sluice.publishing.rebase import rebase_problem
from sluice.publishing.written_tables import check_resumed_tables, check_something_changed


@dataclass(frozen=True)
class ResumeBranchActivity:
    """The activity `resume_branch`.

    Needs the catalog, the properties by which Iceberg reads the lake, and the installation of these runs.
    """

    catalog: BranchCatalog
    io: dict[str, str]
    installation: str

    @activity.defn(name="resume_branch")
    def resume_branch(self, input: ResumeBranchInput) -> ExistingRowsResult:
        """Rebase what a quarantined branch holds onto main as it is now, on the branch of a new attempt."""
        with as_application_error():
            identity = self.catalog.identity()
            if input.catalog_id:
                self.catalog.check_identity(input.catalog_id)
            attempt = AttemptBranch(self.catalog, self.installation, input.run_ref.branch)
            self._rebase(input, attempt)
            branch = attempt.ref(identity)
            head = self.catalog.head(branch.name)
            diffs = self.catalog.diff(branch.base, branch.name, head)
            check_something_changed(diffs)
            states = {diff.name: TableState.load(diff.after, diff.before, self.io) for diff in diffs if diff.after}
            tables = {name: state.change() for name, state in states.items()}
            return ExistingRowsResult(branch=branch, write_result=WriteResult(head=head, tables=tables))

    def _rebase(self, input: ResumeBranchInput, attempt: AttemptBranch) -> None:
        resume = input.resume
        diffs = self.catalog.diff(resume.base, resume.branch, resume.head)
        check_resumed_tables(input, [diff.name for diff in diffs])
        require_capabilities(self.catalog.capabilities, [diff.name for diff in diffs])
        tables = [read_rebase(self.catalog, self.io, diff, attempt.base) for diff in diffs]
        problem = rebase_problem(
            tables,
            appends=input.write.rebases,
            rows_quarantined=True,
            catalog_properties=self.catalog.capabilities.own_table_properties,
        )
        if problem:
            raise InvalidInput(f"main changed since {resume.branch} was written, and {problem}: run the pipeline again")
        if not attempt.is_created:
            commits = [table.commit(marks(input.run_ref)) for table in tables]
            attempt.create(input.run_ref, f"Resume {resume.branch}", commits)
