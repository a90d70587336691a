"""End a workflow task: requesting an activity makes Temporal record the results of earlier local activities."""

from temporalio import activity


@activity.defn(name="checkpoint")
async def checkpoint(why: str) -> None:
    """Do nothing. The request of the activity has the effect (`workflows/workflow_task.py`).

    Args:
        why: the reason for the checkpoint, for people who read the history.
    """
