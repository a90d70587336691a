"""Merge exactly the audited hash into main, and look whether that happened."""

from dataclasses import dataclass

from temporalio import activity

from activities.failures import told_to_temporal
from lakehouse.mainline import Mainline
from lakehouse.nessie import Catalogue
from sluice.errors import ServiceUnavailable
from sluice.orders import ConfirmOrder, Publication, PublishOrder


@dataclass(frozen=True)
class PublishBranchActivity:
    """Needs the catalogue and main."""

    catalogue: Catalogue
    mainline: Mainline

    @activity.defn(name="publish_branch")
    def publish_branch(self, order: PublishOrder) -> Publication:
        """Merge once. A try whose predecessor merged, and lost its answer, finds that in the history of main."""
        with told_to_temporal():
            self.catalogue.check_identity(order.branch.catalogue)
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

    @activity.defn(name="confirm_publication")
    def confirm_publication(self, order: ConfirmOrder) -> Publication:
        """Say whether main holds the hash, whatever was intended and whoever was told what."""
        with told_to_temporal():
            found = self.mainline.publication_of(order.head, order.base)
            return found or Publication(merged=False)
