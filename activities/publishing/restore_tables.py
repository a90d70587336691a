"""Restore the versions of tables at an earlier hash of main on the branch of an attempt, for a roll-back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyiceberg.table import StaticTable
from temporalio import activity

from activities.run.attempt_branch import AttemptBranch
from lakehouse.catalog import BranchCatalog, TableCommit, TableDiff, TableVersion
from lakehouse.iceberg.commit import table_commit
from lakehouse.iceberg.table_state import TableState, load_table
from lakehouse.publishing.restored_files import missing_files
from lakehouse.publishing.table_versions import changed_tables
from sluice.contracts.existing_rows import ExistingRowsResult, Restore, RestoreTablesInput
from sluice.contracts.table_changes import TableChange
from sluice.contracts.write import WriteResult
from sluice.publishing.capabilities import require_capabilities
from sluice.publishing.commit_properties import ROLLED_BACK
from sluice.publishing.rollback import (
    check_files_exist,
    check_restored,
    check_unchanged_since_plan,
    restored_change,
)
from sluice.publishing.written_tables import check_something_changed


@dataclass(frozen=True)
class RestoreTablesActivity:
    """The activity `restore_tables`.

    Needs the catalog, Iceberg's FileIO properties for the lake, and the installation of these runs.
    """

    catalog: BranchCatalog
    io: dict[str, str]
    installation: str

    @activity.defn(name="restore_tables")
    def restore_tables(self, input: RestoreTablesInput) -> ExistingRowsResult:
        """Commit earlier versions of all tables to the branch of a new attempt, in one commit."""
        identity = input.catalog_id or self.catalog.identity()
        attempt = AttemptBranch(self.catalog, self.installation, input.run_ref.branch)
        tables = list(input.restore.tables)
        require_capabilities(self.catalog.capabilities, tables, allow_partial=input.allow_partial)
        commits = list(self._commits(input.restore, attempt.base))
        properties = {ROLLED_BACK: ",".join(run for run in input.restore.runs if run)}
        attempt.create(
            input.run_ref, f"Roll back {', '.join(input.restore.runs)}"[:500], commits, properties=properties
        )
        branch = attempt.ref(identity, tables=input.restore.tables)
        head = self.catalog.head(branch.name)
        diffs = self.catalog.diff(branch.base, branch.name, head)
        check_something_changed(diffs)
        self._verify(input.restore, branch.base, diffs)
        changes = {diff.name: self._change(diff) for diff in diffs}
        written = WriteResult(head=head, tables=changes, versions=changed_tables(diffs))
        return ExistingRowsResult(branch=branch, write_result=written)

    def _commits(self, restore: Restore, base: str) -> Iterator[TableCommit]:
        main = self.catalog.main
        for name, at in restore.tables.items():
            planned = self.catalog.table_version(main, name, restore.main_head)
            check_unchanged_since_plan(name, planned == self.catalog.table_version(main, name, base))
            version = self.catalog.table_version(main, name, at)
            if version is None:
                yield TableCommit(name, None)
            else:
                yield table_commit(name, version.metadata_location, self._load(name, version).metadata)

    def _load(self, name: str, version: TableVersion) -> StaticTable:
        try:
            return load_table(version, self.io)
        except FileNotFoundError:
            check_files_exist(name, [version.metadata_location])
            raise

    def _verify(self, restore: Restore, base: str, diffs: Sequence[TableDiff]) -> None:
        """Check that the branch contains the earlier versions, and that all their files exist.

        Files that main uses, too, are not checked.
        """
        main = self.catalog.main
        planned = {name: self.catalog.table_version(main, name, at) for name, at in restore.tables.items()}
        present = {name: self.catalog.table_version(main, name, base) for name in planned}
        expected = {name: version for name, version in planned.items() if version != present[name]}
        check_restored(expected, {diff.name: diff.after for diff in diffs})
        for diff in diffs:
            check_files_exist(diff.name, missing_files(diff, self.io))

    def _change(self, diff: TableDiff) -> TableChange:
        return restored_change(self._rows(diff.after), self._rows(diff.before))

    def _rows(self, version: TableVersion | None) -> int | None:
        """Return the number of rows of a version, from metadata; None if there is no table."""
        return TableState.load(version, None, self.io).total_rows or 0 if version else None
