"""Bring tables as they were at an earlier hash of main onto the branch of an attempt: a roll-back."""

from collections.abc import Iterator
from dataclasses import dataclass

from temporalio import activity

from activities.attempt_branch import AttemptBranch
from activities.errors import as_application_error
from lakehouse.catalog import BranchCatalog, TableCommit, TableDiff, TableVersion
from lakehouse.iceberg.commit import table_commit
from lakehouse.iceberg.table_state import TableState, load_table
from sluice.contracts.existing_rows import ExistingRowsResult, Restore, RestoreTablesInput
from sluice.contracts.write import TableChange, WriteResult
from sluice.publishing.capabilities import require_capabilities
from sluice.publishing.rollback import check_unchanged_since_plan, restored_change
from sluice.publishing.written_tables import check_something_changed


@dataclass(frozen=True)
class RestoreTablesActivity:
    """The activity `restore_tables`.

    Needs the catalog, the properties by which Iceberg reads the lake, and the installation of these runs.
    """

    catalog: BranchCatalog
    io: dict[str, str]
    installation: str

    @activity.defn(name="restore_tables")
    def restore_tables(self, input: RestoreTablesInput) -> ExistingRowsResult:
        """Commit earlier versions of tables to the branch of a new attempt, all by one commit."""
        with as_application_error():
            identity = self.catalog.identity()
            if input.catalog_id:
                self.catalog.check_identity(input.catalog_id)
            attempt = AttemptBranch(self.catalog, self.installation, input.run_ref.branch)
            require_capabilities(self.catalog.capabilities, list(input.restore.tables))
            commits = list(self._commits(input.restore, attempt.base))
            attempt.create(input.run_ref, f"Roll back {', '.join(input.restore.runs)}"[:500], commits)
            branch = attempt.ref(identity)
            head = self.catalog.head(branch.name)
            diffs = self.catalog.diff(branch.base, branch.name, head)
            check_something_changed(diffs)
            tables = {diff.name: self._change(diff) for diff in diffs}
            return ExistingRowsResult(branch=branch, write_result=WriteResult(head=head, tables=tables))

    def _commits(self, restore: Restore, base: str) -> Iterator[TableCommit]:
        main = self.catalog.main
        for name, at in restore.tables.items():
            planned = self.catalog.table_version(main, name, restore.main_head)
            check_unchanged_since_plan(name, planned == self.catalog.table_version(main, name, base))
            version = self.catalog.table_version(main, name, at)
            if version is None:
                yield TableCommit(name, None)
            else:
                yield table_commit(name, version.metadata_location, load_table(version, self.io).metadata)

    def _change(self, diff: TableDiff) -> TableChange:
        return restored_change(self._rows(diff.after), self._rows(diff.before))

    def _rows(self, version: TableVersion | None) -> int | None:
        """Return how many rows a version has, as far as metadata can tell; None where there is no table."""
        return TableState.load(version, None, self.io).change().total_rows or 0 if version else None
