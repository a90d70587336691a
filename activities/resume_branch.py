"""Bring rows that exist already onto the branch of an attempt: of a kept branch, or of main as it was."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyiceberg.table import StaticTable
from temporalio import activity

from activities.attempt_branch import AttemptBranch
from activities.errors import as_application_error
from lakehouse.iceberg.rebase import CannotRebase, RebaseOptions, operations, rebase_tables
from lakehouse.iceberg.table_state import TableState
from lakehouse.nessie.catalog import NessieCatalog
from lakehouse.nessie.mainline import Mainline
from lakehouse.nessie.operations import delete_table_operation, put_table_operation
from sluice.audit.bad_rows import quarantine_table
from sluice.contracts.activity_inputs import BranchRef, RebaseResult, Restore, ResumeInput, TableChange, WriteResult
from sluice.errors import InvalidInput, UnexpectedWrite
from sluice.publishing.certificate import marks


@dataclass(frozen=True)
class ResumeBranchActivity:
    """Needs the catalog, the properties by which Iceberg reads the lake, and whose runs these are."""

    catalog: NessieCatalog
    mainline: Mainline
    io: dict[str, str]
    installation: str

    @activity.defn(name="resume_branch")
    def resume_branch(self, input: ResumeInput) -> RebaseResult:
        """Take over what a kept branch holds onto main as it is now."""
        with as_application_error():
            assert input.resume
            resume, identity, making = input.resume, self._identity(input), self._making(input)
            changed = self.catalog.changes(resume.base, resume.branch, resume.head)
            expected = {*input.tables, *map(quarantine_table, input.tables)}
            for key in changed:
                if key.kind != "NAMESPACE" and key.name not in expected:
                    raise UnexpectedWrite(f"{resume.branch} changes {key.name}, which the pipeline does not name")
            try:
                by = RebaseOptions(input.write.rebases, divided=True, marks=marks(input.run_ref))
                moved = rebase_tables(self.catalog, self.io, changed, making.base, by)
            except CannotRebase as why:
                raise InvalidInput(
                    f"main changed since {resume.branch} was written, and {why}: run the pipeline again"
                ) from why
            changes = list(operations(self.catalog, self.catalog.main, moved))
            return self._committed(input, identity, making, changes, f"Take up {resume.branch}")

    @activity.defn(name="restore_tables")
    def restore_tables(self, input: ResumeInput) -> RebaseResult:
        """Point tables at the metadata that they had at an earlier hash of main."""
        with as_application_error():
            assert input.restore
            identity, making = self._identity(input), self._making(input)
            changes = list(self._restored(input.restore, making.base))
            return self._committed(input, identity, making, changes, f"Take back {', '.join(input.restore.runs)}"[:500])

    def _making(self, input: ResumeInput) -> AttemptBranch:
        return AttemptBranch(self.catalog, self.mainline, self.installation, input.run_ref.branch)

    def _identity(self, input: ResumeInput) -> str:
        if input.catalog_id:
            self.catalog.check_identity(input.catalog_id)
        return self.catalog.identity()

    def _committed(
        self, input: ResumeInput, identity: str, making: AttemptBranch, changes: list[Any], message: str
    ) -> RebaseResult:
        """Make the branch with all changes in one commit, unless an earlier try did; read it back."""
        making.begin(input.run_ref, message, lambda: changes)
        branch = BranchRef(name=input.run_ref.branch, base=making.base, catalog_id=identity)
        head = self.catalog.head(branch.name)
        keys = self.catalog.changes(branch.base, branch.name, head)
        tables = {
            key.name: self._change(key.after, key.before, restored=bool(input.restore))
            for key in keys
            if key.kind != "NAMESPACE"
        }
        if not tables:
            raise InvalidInput("nothing would change: main holds all of it already")
        return RebaseResult(branch=branch, write_result=WriteResult(head=head, tables=tables))

    def _change(self, after: str | None, before: str | None, *, restored: bool) -> TableChange:
        if after and not restored:
            return TableState.load(after, before, self.io).change()
        now, then = self._rows(after), self._rows(before)
        return TableChange(
            operation="restore" if after else "drop",
            added_rows=max(0, now - then),
            deleted_rows=max(0, then - now),
            total_rows=now if after else None,
        )

    def _rows(self, place: str | None) -> int:
        return (TableState.load(place, None, self.io).change().total_rows or 0) if place else 0

    def _restored(self, restore: Restore, base: str) -> Iterator[dict[str, Any]]:
        main = self.catalog.main
        for name, at in restore.tables.items():
            if self.catalog.table(main, name, base) != self.catalog.table(main, name, restore.seen):
                raise InvalidInput(f"main changed {name} since this roll-back was planned: look again")
            known = self.catalog.content(main, name)
            place = self.catalog.table(main, name, at)
            if place is None:
                yield delete_table_operation(name)
            else:
                metadata = StaticTable.from_metadata(place, self.io).metadata
                yield put_table_operation(name, place, metadata, known.id if known else None)
