"""End the life of an attempt's branch: delete it, or keep what it holds for a person."""

from dataclasses import dataclass

from temporalio import activity

from activities.errors import as_application_error
from lakehouse.catalog import BranchCatalog
from lakehouse.quarantine import create_quarantine
from sluice.contracts.activity_inputs import QuarantineBranchInput
from sluice.errors import NoSuchBranch
from sluice.publishing.certificate import INSTALLATION


@dataclass(frozen=True)
class EndBranchActivity:
    """Needs the catalog, and whose runs these are."""

    catalog: BranchCatalog
    installation: str

    @activity.defn(name="discard_branch")
    def discard_branch(self, name: str) -> None:
        """Delete a branch for good. Each later commit to it fails."""
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
                if not self.catalog.diff(branch.base, branch.name, head):
                    name = ""
                else:
                    said = {**input.properties, INSTALLATION: self.installation}
                    create_quarantine(self.catalog, name, head, branch.name, said)
            except NoSuchBranch:
                if self.catalog.find_head(name) is None:  # kept by an earlier try whose answer was lost?
                    name = ""
            self.catalog.delete_branch(branch.name)
            return name
