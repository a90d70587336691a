"""Plan the load of files that a person selects in a landing zone."""

from dataclasses import dataclass

from temporalio import activity

from activities.run.source_progress import run_with_progress
from lakehouse.arrivals.collector import ArrivalCollector
from lakehouse.source_files import OnProgress
from runtime.pipeline.pipeline_input import pipeline_of_text
from sluice.contracts.zone_loads import LoadPlan, PlanLoadInput


@dataclass(frozen=True)
class PlanLoadActivity:
    """The activity `plan_load`. It lists the landing zone, so the worker must have access to it."""

    collector: ArrivalCollector

    @activity.defn(name="plan_load")
    async def plan_load(self, input: PlanLoadInput) -> LoadPlan:
        """Return the plan for each file, and a batch of the loadable files. The zone loads it only on request."""

        def work(on_progress: OnProgress) -> LoadPlan:
            return self.collector.plan_load(pipeline_of_text(input.pipeline), input, on_progress)

        return await run_with_progress(work, activity.heartbeat, "listing the landing zone")
