"""Bring rows that exist already onto the branch of an attempt: of a kept branch, or of main as it was."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyiceberg.table import StaticTable
from temporalio import activity

from activities.attempt_branch import AttemptBranch
from activities.errors import told_to_temporal
from lakehouse.iceberg.rebase import CannotTakeOver, Rebase, operations, taken_over
from lakehouse.iceberg.table_state import TableState
from lakehouse.nessie.catalog import Catalogue
from lakehouse.nessie.mainline import Mainline
from lakehouse.nessie.operations import delete_table, put_table
from sluice.audit.bad_rows import quarantine_of
from sluice.contracts.activity_inputs import OpenBranch, Rebased, Restore, TableChange, TakeUpOrder, Written
from sluice.errors import InvalidInput, UnexpectedWrite
from sluice.publishing.certificate import marks


@dataclass(frozen=True)
class TakeUpActivity:
    """Needs the catalogue, the properties by which Iceberg reads the lake, and whose runs these are."""

    catalogue: Catalogue
    mainline: Mainline
    io: dict[str, str]
    realm: str

    @activity.defn(name="resume_branch")
    def resume_branch(self, order: TakeUpOrder) -> Rebased:
        """Take over what a kept branch holds onto main as it is now."""
        with told_to_temporal():
            assert order.resume
            resume, identity, making = order.resume, self._identity(order), self._making(order)
            changed = self.catalogue.changes(resume.base, resume.branch, resume.head)
            expected = {*order.tables, *map(quarantine_of, order.tables)}
            for key in changed:
                if key.kind != "NAMESPACE" and key.name not in expected:
                    raise UnexpectedWrite(f"{resume.branch} changes {key.name}, which the pipeline does not name")
            try:
                by = Rebase(order.write.rebases, divided=True, marks=marks(order.origin))
                moved = taken_over(self.catalogue, self.io, changed, making.base, by)
            except CannotTakeOver as why:
                raise InvalidInput(
                    f"main changed since {resume.branch} was written, and {why}: run the pipeline again"
                ) from why
            changes = list(operations(self.catalogue, self.catalogue.main, moved))
            return self._committed(order, identity, making, changes, f"Take up {resume.branch}")

    @activity.defn(name="restore_tables")
    def restore_tables(self, order: TakeUpOrder) -> Rebased:
        """Point tables at the metadata that they had at an earlier hash of main."""
        with told_to_temporal():
            assert order.restore
            identity, making = self._identity(order), self._making(order)
            changes = list(self._restored(order.restore, making.base))
            return self._committed(order, identity, making, changes, f"Take back {', '.join(order.restore.runs)}"[:500])

    def _making(self, order: TakeUpOrder) -> AttemptBranch:
        return AttemptBranch(self.catalogue, self.mainline, self.realm, order.origin.branch)

    def _identity(self, order: TakeUpOrder) -> str:
        if order.catalogue:
            self.catalogue.check_identity(order.catalogue)
        return self.catalogue.identity()

    def _committed(
        self, order: TakeUpOrder, identity: str, making: AttemptBranch, changes: list[Any], message: str
    ) -> Rebased:
        """Make the branch with all changes in one commit, unless an earlier try did; read it back."""
        making.begin(order.origin, message, lambda: changes)
        branch = OpenBranch(name=order.origin.branch, base=making.base, catalogue=identity)
        head = self.catalogue.head(branch.name)
        keys = self.catalogue.changes(branch.base, branch.name, head)
        tables = {
            key.name: self._change(key.after, key.before, restored=bool(order.restore))
            for key in keys
            if key.kind != "NAMESPACE"
        }
        if not tables:
            raise InvalidInput("nothing would change: main holds all of it already")
        return Rebased(branch=branch, written=Written(head=head, tables=tables))

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
        main = self.catalogue.main
        for name, at in restore.tables.items():
            if self.catalogue.table(main, name, base) != self.catalogue.table(main, name, restore.seen):
                raise InvalidInput(f"main changed {name} since this roll-back was planned: look again")
            known = self.catalogue.content(main, name)
            place = self.catalogue.table(main, name, at)
            if place is None:
                yield delete_table(name)
            else:
                metadata = StaticTable.from_metadata(place, self.io).metadata
                yield put_table(name, place, metadata, known.id if known else None)
