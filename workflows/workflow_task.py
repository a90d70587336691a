"""Ending a workflow task early, between local activities: several of them are one workflow task otherwise."""

from datetime import timedelta

from temporalio import workflow

_SHORTEST_TIMER = timedelta(milliseconds=1)


async def end_workflow_task(why: str) -> None:
    """End the workflow task and go on in the next one.

    Results of local activities are written to the history when their workflow task ends, and signals and cancels reach
    a workflow only between workflow tasks.
    A worker that is killed within a workflow task leaves nothing of it: the next worker repeats its local activities.

    Args:
        why: the summary of the timer in the Temporal Web UI.
    """
    await workflow.sleep(_SHORTEST_TIMER, summary=why)
