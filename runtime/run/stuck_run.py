"""Find out why a run does not continue although a worker has it."""

from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.exceptions import ApplicationError

from runtime.run.find_run import RunLookup
from sluice.validation_errors import describe_errors

_FAILED, _COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED, EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
_CAUSES = (
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE,
    WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR,
)
"""Causes of failed workflow tasks that the next try meets again. Others end by themselves."""
_LONGEST = 1000


async def why_stuck(run: RunLookup) -> str:
    """Return why the worker cannot continue a run; empty if it can, or if no worker has the run.

    Temporal repeats a failed workflow task for ever, and the run stays `running`: its history or its messages do not
    fit the worker's release.
    """
    if run.ended or run.description.raw_description.pending_workflow_task.attempt < 2:
        return ""
    last: HistoryEvent | None = None
    async for event in run.handle.fetch_history_events():
        if event.event_type == _COMPLETED:
            last = None
        elif event.event_type == _FAILED and event.workflow_task_failed_event_attributes.cause in _CAUSES:
            last = event
    if last is None:
        return ""
    failure = last.workflow_task_failed_event_attributes.failure
    error: BaseException | None = await run.description.data_converter.decode_failure(failure)
    messages = []
    while error is not None:
        messages.append(_message(error))
        error = error.__cause__
    return ": ".join(filter(None, messages))[:_LONGEST]


def _message(error: BaseException) -> str:
    """Return the message of an error in one line, without its class and without values of a request."""
    if not isinstance(error, ApplicationError):
        return " ".join(str(error).split())
    return describe_errors(error.message) if error.type == "ValidationError" else " ".join(error.message.split())
