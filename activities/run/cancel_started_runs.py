"""Cancel the runs of a workflow that was terminated."""

from dataclasses import dataclass

from temporalio import activity
from temporalio.client import Client

from runtime.run.started_runs import cancel_started_runs
from sluice.contracts.starting import FindRunEndInput, StartedBy


@dataclass(frozen=True)
class CancelStartedRunsActivity:
    """The activity `cancel_started_runs`. Needs Temporal's client."""

    client: Client

    @activity.defn(name="cancel_started_runs")
    async def cancel_started_runs(self, input: StartedBy) -> list[FindRunEndInput]:
        """Cancel the running runs that a workflow started; return them, and those that ended after `since`."""
        return await cancel_started_runs(self.client, input.workflow_id, input.since)
