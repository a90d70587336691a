"""Rebase the write of an attempt onto the current main, without Spark and without copying a row."""

from dataclasses import dataclass

from temporalio import activity

from activities.publishing.input_overlap import input_overlap
from activities.run.attempt_branch import AttemptBranch
from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.rebase import TableRebase, compacted_tables, read_rebase
from lakehouse.iceberg.repeated_files import repeated_files
from lakehouse.iceberg.written_table import read_written_table
from lakehouse.input.loaded_files import LoadedFiles
from lakehouse.publishing.table_versions import changed_tables, table_diffs
from sluice.contracts.existing_rows import RebaseBranchInput, RebaseResult
from sluice.contracts.references import BranchRef
from sluice.contracts.write import WriteResult
from sluice.errors import UnexpectedWrite
from sluice.publishing.branch_properties import marks
from sluice.publishing.rebase import check_not_replaced, moved_tables_problem, rebase_problem, unchanged_tables
from sluice.publishing.written_tables import check_no_repeated_files, check_rebased

_OPENED_TO_WRITE = "an earlier try of this step refused the rebase, and the branch was opened to write again"


@dataclass(frozen=True)
class RebaseBranchActivity:
    """The activity `rebase_branch`.

    Needs the catalog, Iceberg's FileIO properties for the lake, the installation of these runs, and the index of loaded
    files.
    """

    catalog: BranchCatalog
    io: dict[str, str]
    installation: str
    loaded_files: LoadedFiles | None = None

    @activity.defn(name="rebase_branch")
    def rebase_branch(self, input: RebaseBranchInput) -> RebaseResult:
        """Create the branch of a new attempt, with the write of an earlier attempt in one commit.

        The branch of the earlier attempt is already deleted. The versions of its tables can be read without it.
        """
        attempt = AttemptBranch(self.catalog, self.installation, input.run_ref.branch, input.requested_at)
        diffs = table_diffs(input.write_result.versions)
        tables = [read_rebase(self.catalog, self.io, diff, attempt.base) for diff in diffs]
        check_not_replaced(tables, input.branch.name)
        moved = sorted({*input.conflicts, *input.write_result.tables})
        compacted = compacted_tables(self.catalog, self.io, moved, input.branch.base, attempt.base)
        if self._is_opened_to_write(input, attempt):
            return RebaseResult(why_not=_OPENED_TO_WRITE, compacted=compacted)
        if not attempt.is_created and (problem := self._rebase(input, attempt, tables, compacted)):
            return RebaseResult(why_not=problem, compacted=compacted)
        branch = attempt.ref(input.branch.catalog_id, tables=input.write_result.tables)
        return RebaseResult(branch=branch, write_result=self._read_back(input, branch), compacted=compacted)

    def _is_opened_to_write(self, input: RebaseBranchInput, attempt: AttemptBranch) -> bool:
        """Return True if an earlier try refused the rebase, and the run then opened the branch to write again.

        A worker that dies before it reports either step to Temporal leaves such a branch: with a commit, but without
        tables.
        """
        if not attempt.is_created or not input.write_result.tables:
            return False
        name = input.run_ref.branch
        return not self.catalog.diff(attempt.base, name, self.catalog.head(name))

    def _rebase(
        self, input: RebaseBranchInput, attempt: AttemptBranch, tables: list[TableRebase], compacted: list[str]
    ) -> str:
        """Commit the rebased tables to the new branch, or return the reason why they cannot be rebased."""
        if overlap := input_overlap(self.loaded_files, input.published, input.run_ref.run_id):
            return overlap  # the next attempt leaves these files out
        if {table.name for table in tables} != {*input.write_result.tables}:
            raise UnexpectedWrite(f"the versions of the tables that {input.branch.name} changed were not recorded")
        problem = moved_tables_problem(input, compacted) or rebase_problem(
            tables,
            appends=input.write.rebases,
            rows_quarantined=input.rows_quarantined,
            catalog_properties=self.catalog.capabilities.own_table_properties,
            unchanged=unchanged_tables(input.write, compacted),
        )
        if not problem:
            commits = [table.commit(marks(input.run_ref)) for table in tables]
            attempt.create(input.run_ref, f"Rebase {input.branch.name}", commits, properties=input.input_properties)
        return problem

    def _read_back(self, input: RebaseBranchInput, branch: BranchRef) -> WriteResult:
        """Check that the new branch contains exactly the write of the earlier attempt, and return it with its hash."""
        head = self.catalog.head(branch.name)
        attempts = range(1, input.run_ref.attempt + 1)
        diffs = self.catalog.diff(branch.base, branch.name, head)
        tables = [read_written_table(diff, diff.before, self.io, input.run_ref.run_id, attempts) for diff in diffs]
        since = input.first_base or input.branch.base
        check_no_repeated_files(repeated_files(self.catalog, self.io, diffs, since))
        changes = check_rebased(branch.name, input.branch.name, input.write_result, tables)
        return WriteResult(head=head, tables=changes, versions=changed_tables(diffs))
