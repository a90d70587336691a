"""Plan the release of a quarantined branch."""

from dataclasses import dataclass

from temporalio import activity

from activities.errors import as_application_error
from lakehouse.catalog import BranchCatalog
from lakehouse.quarantine import find_quarantined_branch
from sluice.contracts.lake_queries import PlanReleaseInput, ReleasePlan
from sluice.publishing.release import plan_release


@dataclass(frozen=True)
class PlanReleaseActivity:
    """The activity `plan_release`. Needs the catalog."""

    catalog: BranchCatalog

    @activity.defn(name="plan_release")
    def plan_release(self, input: PlanReleaseInput) -> ReleasePlan:
        """Return what a run of the quarantined rows starts from."""
        with as_application_error():
            branch = find_quarantined_branch(self.catalog, input.run)
            resume = plan_release(branch.branch, branch.base, branch.quarantined_hash, input.statements)
            return ReleasePlan(summary=branch.summary, resume=resume)
