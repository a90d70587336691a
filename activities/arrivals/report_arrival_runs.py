"""Report the running and wanted runs of a landing zone to the workflow that limits the runs of all zones."""

from dataclasses import dataclass

from temporalio import activity
from temporalio.client import Client

from sluice.contracts.arrival_runs import RunSlotsState, ZoneRuns, arrival_runs_id


@dataclass(frozen=True)
class ReportArrivalRunsActivity:
    """The activity `report_arrival_runs`.

    Needs Temporal's client, the installation, the task queue of its workflows, and the maximum number of runs.
    """

    client: Client
    installation: str
    task_queue: str
    limit: int

    @activity.defn(name="report_arrival_runs")
    async def report_arrival_runs(self, input: ZoneRuns) -> None:
        """Signal the workflow that limits the runs. Start it if it does not run."""
        await self.client.start_workflow(
            "ArrivalRuns",
            RunSlotsState(limit=self.limit),
            id=arrival_runs_id(self.installation, self.task_queue),
            task_queue=self.task_queue,
            start_signal="report",
            start_signal_args=[input, self.limit],
            static_summary="limits the runs of landing zones",
        )
