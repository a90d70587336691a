"""End the life of an attempt's branch: delete it, or keep what it holds for a person."""

from dataclasses import dataclass

from temporalio import activity

from activities.errors import told_to_temporal
from lakehouse.nessie.catalog import Catalogue, NoSuchBranch
from lakehouse.quarantine import keep_in_quarantine
from sluice.contracts.activity_inputs import QuarantineOrder
from sluice.publishing.certificate import REALM


@dataclass(frozen=True)
class EndBranchActivity:
    """Needs the catalogue, and whose runs these are."""

    catalogue: Catalogue
    realm: str

    @activity.defn(name="discard_branch")
    def discard_branch(self, name: str) -> None:
        """Delete a branch for good. Whoever still writes on it fails from now on."""
        with told_to_temporal():
            self.catalogue.delete_branch(name)

    @activity.defn(name="quarantine_branch")
    def quarantine_branch(self, order: QuarantineOrder) -> str:
        """Keep a branch under its quarantine name and delete the attempt's; return the name.

        An attempt that changed no table leaves nothing to look at: then nothing is kept, and "" returned.
        """
        with told_to_temporal():
            branch = order.branch
            name = order.name
            try:
                head = order.head or self.catalogue.head(branch.name)
                changes = self.catalogue.changes(branch.base, branch.name, head)
                if all(key.kind == "NAMESPACE" for key in changes):
                    name = ""
                else:
                    said = {**order.said, REALM: self.realm}
                    keep_in_quarantine(self.catalogue, name, head, branch.name, said)
            except NoSuchBranch:
                if not self.catalogue.exists(name):  # kept by an earlier try whose answer was lost?
                    name = ""
            self.catalogue.delete_branch(branch.name)
            return name
