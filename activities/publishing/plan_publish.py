"""Plan the publish of a run before its start: determine its guarantee."""

from collections.abc import Mapping
from dataclasses import dataclass

from temporalio import activity

from lakehouse.catalog import BranchCatalog
from lakehouse.later_loads import LaterLoads
from sluice.contracts.publish import PlanPublishInput, PublishPlan
from sluice.publishing.capabilities import guarantee_for, require_capabilities
from sluice.publishing.older_rows import may_be_older


@dataclass(frozen=True)
class PlanPublishActivity:
    """The activity `plan_publish`. Needs the catalog and Iceberg's FileIO properties for the lake."""

    catalog: BranchCatalog
    io: Mapping[str, str]

    @activity.defn(name="plan_publish")
    def plan_publish(self, input: PlanPublishInput) -> PublishPlan:
        """Return the guarantee of a publish of the tables. Refuse a run that `open_branch` would refuse."""
        capabilities = self.catalog.capabilities
        require_capabilities(capabilities, input.tables, allow_partial=input.allow_partial)
        if input.write:
            loads = LaterLoads(self.catalog, self.io)
            order, partitions = input.order, input.partitions
            if order.partition and input.write.selects_files and may_be_older(order, input.write, input.tables):
                partitions, order = [order.partition], order.model_copy(update={"partition": ""})
            loads.check_youngest(input.pipeline, input.write, input.tables, order)
            loads.check_partitions(input.pipeline, input.write, input.tables, partitions, again=input.again)
        return PublishPlan(guarantee=guarantee_for(capabilities, input.tables))
