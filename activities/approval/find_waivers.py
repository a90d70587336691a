"""Find the waivers in force for the failed checks of a run, in the publications on main."""

from dataclasses import dataclass

from temporalio import activity

from activities.approval.require_approval import ApprovalPolicy
from lakehouse.catalog import BranchCatalog
from sluice.approval.waivers import WaivedCheck
from sluice.contracts.publish import FindWaiversInput
from sluice.publishing.recorded_waivers import last_to_end


@dataclass(frozen=True)
class FindWaiversActivity:
    """The activity `find_waivers`. Needs the approval policy of this worker."""

    policy: ApprovalPolicy

    @property
    def catalog(self) -> BranchCatalog:
        """Catalog of the policy."""
        return self.policy.catalog

    @activity.defn(name="find_waivers")
    def find_waivers(self, input: FindWaiversInput) -> list[WaivedCheck]:
        """Return the failed checks that are waived now, each with the waiver that ends last."""
        return last_to_end(self.policy.waivers_in_force(input, self.policy.clock()))
