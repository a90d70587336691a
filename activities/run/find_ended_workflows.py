"""Find the workflows that have ended."""

from dataclasses import dataclass

from temporalio import activity

from activities.run.running_workflows import RunningWorkflows
from sluice.contracts.arrival_runs import WorkflowIds


@dataclass(frozen=True)
class FindEndedWorkflowsActivity:
    """The activity `find_ended_workflows`. Needs the lookup of running workflows."""

    running: RunningWorkflows

    @activity.defn(name="find_ended_workflows")
    def find_ended_workflows(self, input: WorkflowIds) -> WorkflowIds:
        """Return the workflows that are not running any more, or that Temporal does not have."""
        return WorkflowIds(ids=[id for id in input.ids if not self.running.is_running(id)])
