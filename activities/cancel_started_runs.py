"""Cancel the runs that were started by workflows which were ended by force."""

from dataclasses import dataclass

from temporalio import activity
from temporalio.client import Client

from activities.errors import as_application_error
from runtime.started_runs import cancel_started_runs
from sluice.contracts.arrival_runs import WorkflowIds
from sluice.contracts.starting import FindRunEndInput


@dataclass(frozen=True)
class CancelStartedRunsActivity:
    """The activity `cancel_started_runs`. Needs Temporal's client."""

    client: Client

    @activity.defn(name="cancel_started_runs")
    async def cancel_started_runs(self, input: WorkflowIds) -> list[FindRunEndInput]:
        """Cancel the runs that workflows started and that are under way; return them."""
        with as_application_error():
            return [run for id in input.ids for run in await cancel_started_runs(self.client, id)]
