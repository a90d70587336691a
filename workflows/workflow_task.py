"""End a workflow task early, between local activities, which otherwise share one workflow task."""

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import root_cause
    from workflows.run.run_state import RunState


async def end_workflow_task(calls: ActivityCalls, state: RunState, why: str) -> None:
    """End the workflow task and go on in the next one.

    Temporal writes results of local activities to the history when their workflow task ends, and delivers signals and
    cancellations only between workflow tasks. If a worker is killed within a workflow task, the results of the task are
    lost, and the next worker repeats its local activities.

    An activity that does nothing ends the workflow task within some hundredths of a second. A timer would end it, too,
    but a timer of a millisecond may take a second.

    A checkpoint may fail because there is no worker, or because the run was cancelled. The run goes on then, so the
    caller must check for a cancellation.

    Args:
        why: the summary of the activity in the Temporal Web UI.
    """
    try:
        await calls.checkpoint(why)
    except ActivityError as error:
        workflow.logger.warning("a checkpoint failed: %s", root_cause(error)[1])
