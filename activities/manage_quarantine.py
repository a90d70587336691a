"""Do what people order about quarantined branches."""

from dataclasses import dataclass

from temporalio import activity

from activities.errors import as_application_error
from lakehouse.nessie.catalog import NessieCatalog
from lakehouse.nessie.operations import no_change_operation
from lakehouse.quarantine import QuarantinedBranch, find_quarantined_branch
from sluice.contracts.quarantine import ManageQuarantineInput
from sluice.errors import InvalidPipeline
from sluice.publishing.certificate import EXPIRES, INSTALLATION


@dataclass(frozen=True)
class ManageQuarantineActivity:
    """Needs the catalog, and whose runs these are."""

    catalog: NessieCatalog
    installation: str

    @activity.defn(name="manage_quarantine")
    def manage_quarantine(self, input: ManageQuarantineInput) -> str:
        """Do what a person ordered; return the branch that is there now, if any."""
        with as_application_error():
            if input.action == "discard" and not self.catalog.exists(input.branch):
                return ""
            found = find_quarantined_branch(self.catalog, input.branch)
            if found.said.get(INSTALLATION) != self.installation:
                raise InvalidPipeline(f"{input.branch} is of another installation, {found.said.get(INSTALLATION)!r}")
            if input.action == "discard":
                self.catalog.delete_branch(input.branch)
                return ""
            self._keep_until(found, input)
            return input.branch

    def _keep_until(self, found: QuarantinedBranch, input: ManageQuarantineInput) -> None:
        if found.said.get(EXPIRES) != input.until:
            said = {**found.said, EXPIRES: input.until}
            message = f"Keep until {input.until[:10]}, says {input.by}"
            self.catalog.commit(found.branch, found.head, message, [no_change_operation()], said)
