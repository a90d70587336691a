"""List the files in a landing zone with their status."""

from dataclasses import dataclass

from temporalio import activity

from activities.run.source_progress import run_with_progress
from lakehouse.arrivals.collector import ArrivalCollector
from lakehouse.source_files import OnProgress
from runtime.pipeline.pipeline_input import pipeline_of_text
from sluice.contracts.arrivals import ListArrivalsInput, ListArrivalsResult
from sluice.contracts.lake_queries import check_result_size


@dataclass(frozen=True)
class ListArrivalsActivity:
    """The activity `list_arrivals`. It lists the landing zone, so the worker must have access to it."""

    collector: ArrivalCollector

    @activity.defn(name="list_arrivals")
    async def list_arrivals(self, input: ListArrivalsInput) -> ListArrivalsResult:
        """Return the files of a landing zone with their status, newest first."""

        def work(on_progress: OnProgress) -> ListArrivalsResult:
            return self.collector.list_arrivals(pipeline_of_text(input.pipeline), input, on_progress)

        result = await run_with_progress(work, activity.heartbeat, "listing the landing zone")
        check_result_size(len(result.model_dump_json().encode()), "list fewer files with --limit")
        return result
