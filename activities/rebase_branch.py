"""Take over what an attempt wrote onto main as it is now, without Spark and without copying a row."""

from dataclasses import dataclass

from temporalio import activity

from activities.attempt_branch import AttemptBranch
from activities.errors import told_to_temporal
from lakehouse.iceberg.rebase import CannotTakeOver, Rebase, operations, taken_over
from lakehouse.iceberg.table_state import TableState
from lakehouse.nessie.catalog import Catalogue
from lakehouse.nessie.mainline import Mainline
from sluice.contracts.activity_inputs import ForeseeOrder, OpenBranch, Rebased, RebaseOrder, TableChange, Written
from sluice.errors import UnexpectedWrite
from sluice.publishing.certificate import marks


@dataclass(frozen=True)
class RebaseBranchActivity:
    """Needs the catalogue, the properties by which Iceberg reads the lake, and whose runs these are."""

    catalogue: Catalogue
    mainline: Mainline
    io: dict[str, str]
    realm: str

    @activity.defn(name="foresee_conflicts")
    def foresee_conflicts(self, order: ForeseeOrder) -> list[str]:
        """Return what main changed since the branch began, of what the run changed or its checks looked at."""
        with told_to_temporal():
            found = self.mainline.conflicts(order.branch.name, order.head)
            return found or self.mainline.moved(order.looks_at, order.branch.base)

    @activity.defn(name="rebase_branch")
    def rebase_branch(self, order: RebaseOrder) -> Rebased:
        """Make the branch of a new attempt that holds, by one commit, what an earlier one wrote."""
        with told_to_temporal():
            self.catalogue.check_identity(order.branch.catalogue)
            name = order.origin.branch
            making = AttemptBranch(self.catalogue, self.mainline, self.realm, name)
            branch = OpenBranch(name=name, base=making.base, catalogue=order.branch.catalogue)
            if not making.has_begun:
                try:
                    self._take_over(order, branch, making)
                except CannotTakeOver as why:
                    return Rebased(why_not=str(why))
            return Rebased(branch=branch, written=self._read_back(order, branch))

    def _take_over(self, order: RebaseOrder, branch: OpenBranch, making: AttemptBranch) -> None:
        old = self.catalogue.changes(order.branch.base, order.branch.name, order.written.head)
        by = Rebase(order.write.rebases, order.divided, marks(order.origin))
        moved = taken_over(self.catalogue, self.io, old, branch.base, by)
        message = f"Take over what {order.branch.name} holds"
        making.begin(order.origin, message, lambda: list(operations(self.catalogue, branch.name, moved)))

    def _read_back(self, order: RebaseOrder, branch: OpenBranch) -> Written:
        """Find exactly what the earlier attempt wrote on the new branch, and pin the hash that holds it."""
        head = self.catalogue.head(branch.name)
        attempts = range(1, order.origin.attempt + 1)
        changes: dict[str, TableChange] = {}
        for key in self.catalogue.changes(branch.base, branch.name, head):
            if key.kind == "NAMESPACE":
                continue
            before = order.written.tables.get(key.name)
            if before is None or key.after is None:
                raise UnexpectedWrite(f"{branch.name} changes {key.name}, and {order.branch.name} did not")
            state = TableState.load(key.after, key.before, self.io)
            if state.unmarked(order.origin.run_id, attempts):
                raise UnexpectedWrite(f"{key.name} holds a snapshot that this run did not make")
            changes[key.name] = state.change()
            if _brought(changes[key.name]) != _brought(before):
                raise UnexpectedWrite(
                    f"{_brought(before)} rows of {key.name} were to be taken over, not {_brought(changes[key.name])}"
                )
        if changes.keys() != order.written.tables.keys():
            raise UnexpectedWrite(f"{branch.name} holds {sorted(changes)}, not {sorted(order.written.tables)}")
        return Written(head=head, tables=changes)


def _brought(change: TableChange) -> int:
    return change.added_rows - change.deleted_rows
