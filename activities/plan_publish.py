"""Plan the publish of a run that is about to be started: what it guarantees."""

from dataclasses import dataclass

from temporalio import activity

from activities.errors import as_application_error
from lakehouse.catalog import BranchCatalog
from sluice.contracts.publish import PlanPublishInput, PublishPlan
from sluice.publishing.capabilities import guarantee_for, require_capabilities


@dataclass(frozen=True)
class PlanPublishActivity:
    """The activity `plan_publish`. Needs the catalog, of which it reads what that declares."""

    catalog: BranchCatalog

    @activity.defn(name="plan_publish")
    def plan_publish(self, input: PlanPublishInput) -> PublishPlan:
        """Return what a publish of the tables guarantees; refuse one that `open_branch` would refuse."""
        with as_application_error():
            capabilities = self.catalog.capabilities
            require_capabilities(capabilities, input.tables, allow_partial=input.allow_partial)
            return PublishPlan(guarantee=guarantee_for(capabilities, input.tables))
