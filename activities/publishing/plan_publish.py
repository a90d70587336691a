"""Plan the publish of a run before its start: determine its guarantee."""

from collections.abc import Mapping
from dataclasses import dataclass

from temporalio import activity

from lakehouse.catalog import BranchCatalog
from lakehouse.input.later_loads import LaterLoads
from lakehouse.input.loaded_files import LoadedFiles
from sluice.contracts.publish import PlanPublishInput, PublishPlan
from sluice.input.selection import refuse_partly_loaded
from sluice.publishing.capabilities import guarantee_for, require_capabilities


@dataclass(frozen=True)
class PlanPublishActivity:
    """The activity `plan_publish`.

    Needs the catalog, Iceberg's FileIO properties for the lake, and the index of loaded files.
    """

    catalog: BranchCatalog
    io: Mapping[str, str]
    loaded_files: LoadedFiles

    @activity.defn(name="plan_publish")
    def plan_publish(self, input: PlanPublishInput) -> PublishPlan:
        """Return the guarantee of a publish of the tables. Refuse a run that `open_branch` would refuse."""
        capabilities = self.catalog.capabilities
        require_capabilities(capabilities, input.tables, allow_partial=input.allow_partial)
        if input.write:
            LaterLoads(self.catalog, self.io, self.loaded_files).check_plan(input, input.write)
        refuse_partly_loaded(self.loaded_files.find_overlapping(input.pipeline, input.scopes, input.tables))
        return PublishPlan(guarantee=guarantee_for(capabilities, input.tables))
