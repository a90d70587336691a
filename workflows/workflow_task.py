"""Ending a workflow task early, between local activities: several of them are one workflow task otherwise."""

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from workflows.activity_calls import ActivityCalls
    from workflows.failures import root_cause
    from workflows.run.run_state import RunState


async def end_workflow_task(calls: ActivityCalls, state: RunState, why: str) -> None:
    """End the workflow task and go on in the next one.

    Results of local activities are written to the history when their workflow task ends, and signals and cancels reach
    a workflow only between workflow tasks.
    A worker that is killed within a workflow task leaves nothing of it: the next worker repeats its local activities.

    An activity that does nothing ends it within some hundredths of a second. A timer would, too, but Temporal may let
    a timer of a millisecond take a second.

    A checkpoint that fails, for want of a worker or because the run was cancelled, fails nothing else: the caller goes
    on, and asks whether the run was cancelled.

    Args:
        why: the summary of the activity in the Temporal Web UI.
    """
    try:
        await calls.checkpoint(why)
    except ActivityError as error:
        workflow.logger.warning("a checkpoint failed: %s", root_cause(error)[1])
