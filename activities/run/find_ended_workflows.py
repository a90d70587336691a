"""Find out which workflows have ended."""

from dataclasses import dataclass

from temporalio import activity

from activities.run.running_workflows import RunningWorkflows
from sluice.contracts.arrival_runs import WorkflowIds


@dataclass(frozen=True)
class FindEndedWorkflowsActivity:
    """The activity `find_ended_workflows`. Needs to ask which workflows run."""

    running: RunningWorkflows

    @activity.defn(name="find_ended_workflows")
    def find_ended_workflows(self, input: WorkflowIds) -> WorkflowIds:
        """Return those that do not run any more, or that Temporal does not have."""
        return WorkflowIds(ids=[id for id in input.ids if not self.running.is_running(id)])
