"""Add the rows of a quarantined branch to the branch of an attempt, and verify that it contains exactly these."""

from dataclasses import dataclass

from temporalio import activity

from activities.publishing.input_overlap import input_overlap
from activities.run.attempt_branch import AttemptBranch
from lakehouse.catalog import BranchCatalog, TableDiff
from lakehouse.iceberg.rebase import read_rebase
from lakehouse.iceberg.repeated_files import repeated_files
from lakehouse.input.loaded_files import LoadedFiles
from lakehouse.publishing.published_commits import find_publication_of_run
from lakehouse.publishing.table_versions import changed_tables
from lakehouse.quarantine.quarantined_branches import QuarantinedBranch, read_quarantined_branch
from lakehouse.quarantine.released_rows import read_marked_tables
from sluice.contracts.existing_rows import ExistingRowsResult, ResumeBranchInput
from sluice.contracts.quarantine import VerifiedWrite
from sluice.contracts.write import WriteResult
from sluice.errors import InvalidInput
from sluice.publishing.branch_properties import marks
from sluice.publishing.capabilities import require_capabilities
from sluice.publishing.commit_properties import RESUMES
from sluice.publishing.rebase import check_not_replaced, rebase_problem
from sluice.publishing.release import (
    check_not_published,
    check_quarantined_write,
    check_releasable,
    check_resume,
    check_resumed_write,
    may_append,
    not_added_to_main,
)
from sluice.publishing.row_counts import written_row_counts
from sluice.publishing.written_tables import (
    check_no_repeated_files,
    check_resumed_tables,
    check_something_changed,
)


@dataclass(frozen=True)
class ResumeBranchActivity:
    """The activity `resume_branch`.

    Needs the catalog, Iceberg's FileIO properties for the lake, and the installation of these runs.
    """

    catalog: BranchCatalog
    io: dict[str, str]
    installation: str
    loaded_files: LoadedFiles | None = None

    @activity.defn(name="resume_branch")
    def resume_branch(self, input: ResumeBranchInput) -> ExistingRowsResult:
        """Rebase the content of a quarantined branch onto the current main, on the branch of a new attempt.

        The request's description of the quarantine must match the quarantine, which is never changed.
        """
        identity = input.catalog_id or self.catalog.identity()
        quarantined = read_quarantined_branch(self.catalog, input.resume.branch)
        verified = self._check_quarantine(input, quarantined)
        attempt = AttemptBranch(self.catalog, self.installation, input.run_ref.branch)
        self._check_not_published(input)
        self._rebase(input, verified, attempt)
        branch = attempt.ref(identity, tables=verified.tables)
        head = self.catalog.head(branch.name)
        diffs = self.catalog.diff(branch.base, branch.name, head)
        return ExistingRowsResult(branch=branch, write_result=self._read_back(input, verified, head, diffs))

    def _check_quarantine(self, input: ResumeBranchInput, quarantined: QuarantinedBranch) -> VerifiedWrite:
        """Check that the branch contains exactly the write of its run, as the run verified it."""
        summary, head = quarantined.summary, quarantined.quarantined_hash
        verified = check_releasable(summary, quarantined.verified, self.installation)
        check_resume(input.resume, summary, quarantined.base, head)
        diffs = self.catalog.diff(quarantined.base, quarantined.branch, head)
        changed = [diff.name for diff in diffs]
        check_resumed_tables(input, changed)
        require_capabilities(self.catalog.capabilities, changed, allow_partial=input.allow_partial)
        tables = read_marked_tables(diffs, self.io, verified.makers(quarantined.run_id))
        check_quarantined_write(quarantined.branch, verified, tables)
        return verified

    def _check_not_published(self, input: ResumeBranchInput) -> None:
        """Check that main contains neither the rows of the quarantined run nor files of its input.

        The run itself or another release may have published the rows. Call this when the base of the attempt is known.
        Any later publication changes the same tables. The merge of this release is then a conflict, and the next
        attempt checks again.
        """
        resume = input.resume
        commit = find_publication_of_run(self.catalog, resume.run_id, resume.base)
        check_not_published(resume, commit.workflow_id if commit else "", commit.hash if commit else "")
        if overlap := input_overlap(self.loaded_files, resume.published, input.run_ref.run_id):
            raise InvalidInput(f"{overlap}. To publish {resume.branch} anyway, add --again")

    def _rebase(self, input: ResumeBranchInput, verified: VerifiedWrite, attempt: AttemptBranch) -> None:
        resume = input.resume
        diffs = self.catalog.diff(resume.base, resume.branch, resume.head)
        check_something_changed(diffs)
        tables = [read_rebase(self.catalog, self.io, diff, attempt.base) for diff in diffs]
        check_not_replaced(tables, resume.branch)
        problem = rebase_problem(
            tables,
            appends=may_append(input, verified),
            rows_quarantined=verified.rows_quarantined,
            catalog_properties=self.catalog.capabilities.own_table_properties,
        )
        if problem:
            raise InvalidInput(not_added_to_main(resume, problem, input.write, input.tables))
        if not attempt.is_created:
            commits = [table.commit(marks(input.run_ref)) for table in tables]
            properties = {**input.input_properties, RESUMES: resume.branch}
            attempt.create(input.run_ref, f"Resume {resume.branch}", commits, properties=properties)

    def _read_back(
        self, input: ResumeBranchInput, verified: VerifiedWrite, head: str, diffs: list[TableDiff]
    ) -> WriteResult:
        """Check that the new branch contains the same rows as the quarantine; return its changes to main."""
        resume, run_ref = input.resume, input.run_ref
        makers = [*verified.makers(resume.run_id), (run_ref.run_id, [run_ref.attempt])]
        check_no_repeated_files(repeated_files(self.catalog, self.io, diffs, resume.base, all_files=True))
        changes = check_resumed_write(run_ref.branch, resume, verified, read_marked_tables(diffs, self.io, makers))
        tables = {
            name: change.model_copy(update={"rows": written_row_counts(change, input.write.traits)})
            for name, change in changes.items()
        }
        return WriteResult(head=head, tables=tables, versions=changed_tables(diffs))
