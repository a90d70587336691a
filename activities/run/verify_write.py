"""Verify the write of an attempt on its branch, because the exit code of a job proves nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from temporalio import activity

from lakehouse.catalog import BranchCatalog, TableDiff, TableVersion
from lakehouse.iceberg.row_comparison import count_changed_rows
from lakehouse.iceberg.table_state import TableState
from lakehouse.iceberg.written_table import read_written_table
from lakehouse.publishing.table_versions import changed_tables
from sluice.contracts.table_changes import RowNumbers
from sluice.contracts.write import VerifyWriteInput, WriteResult
from sluice.publishing.written_tables import (
    WrittenTable,
    check_changed_namespace,
    check_changed_tables,
    check_write,
)


@dataclass(frozen=True)
class VerifyWriteActivity:
    """The activity `verify_write`. Needs the catalog and Iceberg's FileIO properties for the lake."""

    catalog: BranchCatalog
    io: dict[str, str]

    @activity.defn(name="verify_write")
    def verify_write(self, input: VerifyWriteInput) -> WriteResult:
        """Read the branch, check that it contains exactly the whole write, and return the write with its hash."""
        branch = input.branch
        head = self.catalog.head(branch.name)
        diffs = self.catalog.diff(branch.base, branch.name, head)
        earlier = {diff.name: self._earlier_version(input, diff) for diff in diffs}
        changed = [diff.name for diff in diffs if not input.since or diff.after != earlier[diff.name]]
        check_changed_tables(input, changed)
        for namespace in self.catalog.diff_namespaces(branch.base, branch.name, head):
            check_changed_namespace(input.tables, namespace.elements, namespace.before, namespace.after)
        changes = check_write(input, [self._read(input, diff, earlier[diff.name]) for diff in diffs])
        conflicts = self.catalog.find_conflicts(branch.name, head)
        repaired = self._repaired(diffs, earlier) if input.repairs and input.since else {}
        return WriteResult(
            head=head, tables=changes, versions=changed_tables(diffs), conflicts=conflicts, repaired=repaired
        )

    def _earlier_version(self, input: VerifyWriteInput, diff: TableDiff) -> TableVersion | None:
        """Return the version of a table after which all snapshots must be of this attempt."""
        if not input.since:
            return diff.before
        return self.catalog.table_version(input.branch.name, diff.name, input.since)

    def _repaired(
        self, diffs: Sequence[TableDiff], earlier: Mapping[str, TableVersion | None]
    ) -> dict[str, RowNumbers]:
        """Return by table the rows that the SQL of a repair changed, if they are few enough to compare."""
        repaired = {}
        for diff in diffs:
            since = earlier[diff.name]
            if diff.after is None or since is None or since == diff.after:
                continue
            if rows := count_changed_rows(TableState.load(diff.after, since, self.io)):
                repaired[diff.name] = RowNumbers.model_validate(rows.model_dump(include=set(RowNumbers.model_fields)))
        return repaired

    def _read(self, input: VerifyWriteInput, diff: TableDiff, since: TableVersion | None) -> WrittenTable:
        run_ref = input.run_ref
        return read_written_table(diff, since, self.io, run_ref.run_id, [run_ref.attempt])
