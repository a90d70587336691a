"""Merge exactly the audited hash into main, and look whether that happened."""

from dataclasses import dataclass

from temporalio import activity

from activities.errors import told_to_temporal
from lakehouse.nessie.catalog import Catalogue
from lakehouse.nessie.mainline import Mainline
from sluice.approval.signatures import objection, read_approvers
from sluice.contracts.activity_inputs import ConfirmOrder, Publication, PublishOrder, StatementOrder
from sluice.errors import ServiceUnavailable, Unapproved


@dataclass(frozen=True)
class PublishBranchActivity:
    """Needs the catalogue and main."""

    catalogue: Catalogue
    mainline: Mainline
    approvers_file: str = ""
    """Where those who may decide are listed; empty means that nobody has to sign."""

    @activity.defn(name="publish_branch")
    def publish_branch(self, order: PublishOrder) -> Publication:
        """Merge once. A try whose predecessor merged, and lost its answer, finds that in the history of main."""
        with told_to_temporal():
            self.catalogue.check_identity(order.branch.catalogue)
            self._check_approvals(order)
            earlier = self.mainline.publication_of(order.head, order.branch.base)
            if earlier:
                return earlier
            if moved := self.mainline.moved(order.looks_at, order.branch.base):
                return Publication(merged=False, conflicts=moved)
            found = self.mainline.merge(order.branch, order.head, order.author, order.message, order.properties)
            if found.merged or found.conflicts:
                return found
            # Nessie says that there was nothing to do: an earlier request of ours was still under way.
            earlier = self.mainline.publication_of(order.head, order.branch.base)
            if earlier is None:
                raise ServiceUnavailable("Nessie merged nothing, and the history of main does not say why")
            return earlier

    @activity.defn(name="check_statement")
    def check_statement(self, order: StatementOrder) -> str:
        """Return why a decision is not its author's, or nothing where nobody has to sign."""
        with told_to_temporal():
            approvers = read_approvers(self.approvers_file)
            ruled = order.ruled
            return objection(ruled.statement(order.run_id), ruled.signature, approvers) if approvers else ""

    def _check_approvals(self, order: PublishOrder) -> None:
        """Make sure, where people have keys, that as many as had to signed for exactly this hash.

        The workflow checked each decision when it came; but who may start workflows may make any order.
        """
        approvers = read_approvers(self.approvers_file)
        if not approvers or not order.required:
            return
        for ruled in order.approvals:
            why = objection(ruled.statement(order.origin.run_id), ruled.signature, approvers)
            if ruled.audited_hash != order.head or not ruled.approve:
                why = "it is for something else"
            if why:
                raise Unapproved(f"the approval by {ruled.by} does not count: {why}")
        if len({ruled.by for ruled in order.approvals}) < order.required:
            raise Unapproved(f"{order.required} approvals are asked for")

    @activity.defn(name="confirm_publication")
    def confirm_publication(self, order: ConfirmOrder) -> Publication:
        """Say whether main holds the hash, whatever was intended and whoever was told what."""
        with told_to_temporal():
            found = self.mainline.publication_of(order.head, order.base)
            return found or Publication(merged=False)
