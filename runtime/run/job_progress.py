"""Progress of the Spark job of a run."""

from temporalio.api.enums.v1 import PendingActivityState
from temporalio.client import WorkflowExecutionDescription

from sluice.contracts.progress import ON_SPARK, Progress


async def read_progress(description: WorkflowExecutionDescription) -> str:
    """Return the progress of a run's Spark job from its last heartbeat, or "" if no job runs or waits."""
    for activity in description.raw_description.pending_activities:
        if (
            activity.state == PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED
            and activity.activity_type.name in ON_SPARK
        ):
            return "waiting for a free slot on a Spark worker"
        if activity.HasField("heartbeat_details") and activity.heartbeat_details.payloads:
            payloads = list(activity.heartbeat_details.payloads)
            progress: Progress
            (progress,) = await description.data_converter.decode(payloads[:1], [Progress])
            return progress.text
        if activity.HasField("last_failure") and activity.attempt > 1:
            return f"{activity.activity_type.name}, try {activity.attempt}: {activity.last_failure.message[:120]}"
    return ""
