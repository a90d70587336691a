"""Keep what the branch of an attempt holds, for a person."""

from dataclasses import dataclass

from temporalio import activity

from activities.errors import as_application_error
from lakehouse.catalog import BranchCatalog
from lakehouse.quarantine import create_quarantine
from sluice.contracts.quarantine import QuarantineBranchInput
from sluice.errors import NoSuchBranch
from sluice.publishing.certificate import INSTALLATION


@dataclass(frozen=True)
class QuarantineBranchActivity:
    """The activity `quarantine_branch`. Needs the catalog, and the installation that these runs belong to."""

    catalog: BranchCatalog
    installation: str

    @activity.defn(name="quarantine_branch")
    def quarantine_branch(self, input: QuarantineBranchInput) -> str:
        """Copy a branch under its quarantine name and delete the attempt's; return the name.

        An attempt that changed no table leaves nothing to look at: then nothing is kept, and "" returned.
        """
        with as_application_error():
            name = self._copy(input)
            self.catalog.delete_branch(input.branch.name)
            return name

    def _copy(self, input: QuarantineBranchInput) -> str:
        branch = input.branch
        try:
            head = input.head or self.catalog.head(branch.name)
            if not self.catalog.diff(branch.base, branch.name, head):
                return ""
            properties = {**input.properties, INSTALLATION: self.installation}
            create_quarantine(self.catalog, input.name, head, branch.name, properties)
            return input.name
        except NoSuchBranch:  # it is gone: copied by an earlier try whose answer was lost, or never created
            return input.name if self.catalog.find_head(input.name) else ""
