"""Take over what an attempt wrote onto main as it is now, without Spark and without copying a row."""

from dataclasses import dataclass

from temporalio import activity

from activities.attempt_branch import AttemptBranch
from activities.errors import as_application_error
from lakehouse.catalog import BranchCatalog, tables_changed_since
from lakehouse.iceberg.rebase import CannotRebase, RebaseOptions, rebase_tables
from lakehouse.iceberg.table_state import TableState
from sluice.contracts.activity_inputs import (
    BranchRef,
    FindConflictsInput,
    RebaseBranchInput,
    RebaseResult,
    TableChange,
    WriteResult,
)
from sluice.errors import UnexpectedWrite
from sluice.publishing.certificate import marks


@dataclass(frozen=True)
class RebaseBranchActivity:
    """Needs the catalog, the properties by which Iceberg reads the lake, and whose runs these are."""

    catalog: BranchCatalog
    io: dict[str, str]
    installation: str

    @activity.defn(name="find_conflicts")
    def find_conflicts(self, input: FindConflictsInput) -> list[str]:
        """Return what main changed since the branch began, of what the run changed or its checks looked at."""
        with as_application_error():
            conflicts = self.catalog.find_conflicts(input.branch.name, input.head)
            return conflicts or tables_changed_since(self.catalog, input.referenced_tables, input.branch.base)

    @activity.defn(name="rebase_branch")
    def rebase_branch(self, input: RebaseBranchInput) -> RebaseResult:
        """Make the branch of a new attempt that holds, by one commit, what an earlier one wrote."""
        with as_application_error():
            self.catalog.check_identity(input.branch.catalog_id)
            name = input.run_ref.branch
            attempt = AttemptBranch(self.catalog, self.installation, name)
            branch = input.branch.model_copy(update={"name": name, "base": attempt.base, "sorted_tables": []})
            if not attempt.is_created:
                try:
                    self._rebase(input, attempt)
                except CannotRebase as why:
                    return RebaseResult(why_not=str(why))
            return RebaseResult(branch=branch, write_result=self._read_back(input, branch))

    def _rebase(self, input: RebaseBranchInput, attempt: AttemptBranch) -> None:
        written = self.catalog.diff(input.branch.base, input.branch.name, input.write_result.head)
        by = RebaseOptions(input.write.rebases, input.rows_quarantined, marks(input.run_ref))
        tables = rebase_tables(self.catalog, self.io, written, attempt.base, by)
        message = f"Rebase {input.branch.name}"
        attempt.create(input.run_ref, message, lambda: [table.commit for table in tables])

    def _read_back(self, input: RebaseBranchInput, branch: BranchRef) -> WriteResult:
        """Find exactly what the earlier attempt wrote on the new branch, and pin the hash that holds it."""
        head = self.catalog.head(branch.name)
        attempts = range(1, input.run_ref.attempt + 1)
        changes: dict[str, TableChange] = {}
        for key in self.catalog.diff(branch.base, branch.name, head):
            before = input.write_result.tables.get(key.name)
            if before is None or key.after is None:
                raise UnexpectedWrite(f"{branch.name} changes {key.name}, and {input.branch.name} did not")
            state = TableState.load(key.after, key.before, self.io)
            if state.unmarked(input.run_ref.run_id, attempts):
                raise UnexpectedWrite(f"{key.name} holds a snapshot that this run did not make")
            changes[key.name] = state.change()
            if _brought(changes[key.name]) != _brought(before):
                raise UnexpectedWrite(
                    f"{_brought(before)} rows of {key.name} were to be taken over, not {_brought(changes[key.name])}"
                )
        if changes.keys() != input.write_result.tables.keys():
            raise UnexpectedWrite(f"{branch.name} holds {sorted(changes)}, not {sorted(input.write_result.tables)}")
        return WriteResult(head=head, tables=changes)


def _brought(change: TableChange) -> int:
    return change.added_rows - change.deleted_rows
