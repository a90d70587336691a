"""End a workflow task: what the workflow learned by local activities is recorded when it asks for an activity."""

from temporalio import activity


@activity.defn(name="checkpoint")
async def checkpoint(why: str) -> None:
    """Do nothing. The request alone has the effect (`workflows/workflow_task.py`).

    Args:
        why: what is to be recorded, for people who read the history.
    """
