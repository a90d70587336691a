"""Discard a quarantined branch, or keep it until another day, at the request of a person."""

from dataclasses import dataclass

from temporalio import activity

from activities.run.running_workflows import RunningWorkflows
from lakehouse.catalog import BranchCatalog
from lakehouse.quarantine.quarantined_branches import QuarantinedBranch, read_quarantined_branch
from sluice.contracts.quarantine import ManageQuarantineInput
from sluice.errors import InvalidPipeline, ServiceUnavailable
from sluice.publishing.commit_properties import EXPIRES


@dataclass(frozen=True)
class ManageQuarantineActivity:
    """The activity `manage_quarantine`.

    Needs the catalog, the lookup of running workflows, and the installation that quarantines must belong to.
    """

    catalog: BranchCatalog
    running: RunningWorkflows
    installation: str

    @activity.defn(name="manage_quarantine")
    def manage_quarantine(self, input: ManageQuarantineInput) -> str:
        """Carry out the action; return the name of the branch, or "" if it was deleted."""
        if input.action == "discard" and self.catalog.find_head(input.branch) is None:
            return ""
        branch = read_quarantined_branch(self.catalog, input.branch)
        if branch.installation != self.installation:
            raise InvalidPipeline(
                f"{input.branch} belongs to the installation {branch.installation!r}, and this one is "
                f"{self.installation!r}: nothing was changed"
            )
        if input.action == "keep" and branch.properties.get(EXPIRES) == input.until:
            return input.branch
        if input.head and input.head != branch.head:
            raise InvalidPipeline(
                f"{input.branch} changed since it was shown. Nothing was done: run `quarantine show` again"
            )
        if input.action == "discard":
            self._discard(branch)
            return ""
        self._keep_until(branch, input)
        return input.branch

    def _discard(self, branch: QuarantinedBranch) -> None:
        """Delete a quarantine, unless a release uses it or it changed meanwhile.

        Raises:
            InvalidPipeline: a running release uses it.
            ServiceUnavailable: it changed meanwhile.
        """
        if release := self.running.release_of(branch):
            raise InvalidPipeline(
                f"{branch.branch} is not discarded while {release} releases it: wait for its end, or cancel it first"
            )
        self.catalog.delete_branch_at(branch.branch, branch.head)
        if self.catalog.find_head(branch.branch) is not None:
            raise ServiceUnavailable(f"{branch.branch} was changed meanwhile")

    def _keep_until(self, branch: QuarantinedBranch, input: ManageQuarantineInput) -> None:
        properties = {**branch.properties, EXPIRES: input.until}
        message = f"Keep until {input.until[:10]}, by {input.by}"
        self.catalog.commit_tables(branch.branch, branch.head, message, properties=properties)
