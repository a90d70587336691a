"""End the life of an attempt's branch: delete it, or keep what it holds for a person."""

from dataclasses import dataclass

from temporalio import activity

from activities.errors import as_application_error
from lakehouse.nessie.catalog import NessieCatalog, NoSuchBranch
from lakehouse.quarantine import create_quarantine
from sluice.contracts.activity_inputs import QuarantineBranchInput
from sluice.publishing.certificate import INSTALLATION


@dataclass(frozen=True)
class EndBranchActivity:
    """Needs the catalog, and whose runs these are."""

    catalog: NessieCatalog
    installation: str

    @activity.defn(name="discard_branch")
    def discard_branch(self, name: str) -> None:
        """Delete a branch for good. Whoever still writes on it fails from now on."""
        with as_application_error():
            self.catalog.delete_branch(name)

    @activity.defn(name="quarantine_branch")
    def quarantine_branch(self, input: QuarantineBranchInput) -> str:
        """Keep a branch under its quarantine name and delete the attempt's; return the name.

        An attempt that changed no table leaves nothing to look at: then nothing is kept, and "" returned.
        """
        with as_application_error():
            branch = input.branch
            name = input.name
            try:
                head = input.head or self.catalog.head(branch.name)
                changes = self.catalog.changes(branch.base, branch.name, head)
                if all(key.kind == "NAMESPACE" for key in changes):
                    name = ""
                else:
                    said = {**input.said, INSTALLATION: self.installation}
                    create_quarantine(self.catalog, name, head, branch.name, said)
            except NoSuchBranch:
                if not self.catalog.exists(name):  # kept by an earlier try whose answer was lost?
                    name = ""
            self.catalog.delete_branch(branch.name)
            return name
