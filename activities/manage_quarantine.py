"""Discard a quarantined branch, or keep it until another day, as a person asks."""

from dataclasses import dataclass

from temporalio import activity

from activities.errors import as_application_error
from lakehouse.catalog import BranchCatalog
from lakehouse.quarantine import QuarantinedBranch, find_quarantined_branch
from sluice.contracts.quarantine import ManageQuarantineInput
from sluice.errors import InvalidPipeline
from sluice.publishing.certificate import EXPIRES, INSTALLATION


@dataclass(frozen=True)
class ManageQuarantineActivity:
    """The activity `manage_quarantine`.

    Needs the catalog, and the installation that quarantines must belong to.
    """

    catalog: BranchCatalog
    installation: str

    @activity.defn(name="manage_quarantine")
    def manage_quarantine(self, input: ManageQuarantineInput) -> str:
        """Carry out the action; return the branch that is left, or "" if it is deleted."""
        with as_application_error():
            if input.action == "discard" and self.catalog.find_head(input.branch) is None:
                return ""
            branch = find_quarantined_branch(self.catalog, input.branch)
            if branch.properties.get(INSTALLATION) != self.installation:
                raise InvalidPipeline(
                    f"{input.branch} is of another installation, {branch.properties.get(INSTALLATION)!r}"
                )
            if input.action == "discard":
                self.catalog.delete_branch(input.branch)
                return ""
            self._keep_until(branch, input)
            return input.branch

    def _keep_until(self, branch: QuarantinedBranch, input: ManageQuarantineInput) -> None:
        if branch.properties.get(EXPIRES) != input.until:
            properties = {**branch.properties, EXPIRES: input.until}
            message = f"Keep until {input.until[:10]}, by {input.by}"
            self.catalog.commit_tables(branch.branch, branch.head, message, properties=properties)
