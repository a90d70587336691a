"""Find out why a workflow does not continue although a worker has it: a run, a landing zone or a backfill."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowExecutionDescription, WorkflowExecutionStatus, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from runtime.missing_worker import cannot_continue
from sluice.errors import ServiceUnavailable
from sluice.validation_errors import describe_errors

_FAILED, _COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED, EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
_CANCEL_REQUESTED = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED
_OTHER_COMMANDS = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR
_LASTING = ("ValidationError", "UnknownRevision")
"""Classes of errors that each try on the same worker meets again. Others may end, such as a worker that is too slow."""
_LONGEST = 1000
_DESCRIBED_WITHIN = 5.0
"""Time that Temporal has to describe a workflow that gave no answer, in seconds."""


@dataclass(frozen=True)
class StuckWorkflow:
    """A workflow that the worker cannot continue."""

    why: str
    is_cancel_requested: bool
    """True if somebody requested its cancellation, which no worker could follow so far."""


async def find_stuck(handle: WorkflowHandle[Any, Any], described: WorkflowExecutionDescription) -> StuckWorkflow | None:
    """Return why the worker cannot continue a workflow; None if it can, or if no worker has the workflow.

    Temporal repeats a failed workflow task for ever, and the workflow stays `running`: its history or its messages do
    not fit the worker's release.
    """
    has_ended = described.status != WorkflowExecutionStatus.RUNNING
    if has_ended or described.raw_description.pending_workflow_task.attempt < 2:
        return None
    last: HistoryEvent | None = None
    is_cancel_requested = False
    async for event in handle.fetch_history_events():
        is_cancel_requested = is_cancel_requested or event.event_type == _CANCEL_REQUESTED
        if event.event_type in (_COMPLETED, _FAILED):
            last = event if event.event_type == _FAILED else None
    if last is None:
        return None
    failed = last.workflow_task_failed_event_attributes
    errors = list(_causes(await described.data_converter.decode_failure(failed.failure)))
    is_lasting = any(isinstance(error, ApplicationError) and error.type in _LASTING for error in errors)
    if failed.cause != _OTHER_COMMANDS and not is_lasting:
        return None
    return StuckWorkflow(": ".join(filter(None, map(_message, errors)))[:_LONGEST], is_cancel_requested)


async def why_stuck(handle: WorkflowHandle[Any, Any], described: WorkflowExecutionDescription) -> str:
    """Return why the worker cannot continue a workflow; empty if it can, or if no worker has the workflow."""
    stuck = await find_stuck(handle, described)
    return stuck.why if stuck else ""


async def refuse_if_stuck(
    handle: WorkflowHandle[Any, Any], described: WorkflowExecutionDescription, ending: str
) -> None:
    """Refuse a request that a workflow could not answer.

    Args:
        ending: the way to end the workflow.

    Raises:
        ServiceUnavailable: the worker cannot continue the workflow.
    """
    if why := await why_stuck(handle, described):
        raise cannot_continue(handle.id, why, ending)


async def no_answer(handle: WorkflowHandle[Any, Any], ending: str, otherwise: ServiceUnavailable) -> ServiceUnavailable:
    """Return the error of a request without an answer: the worker cannot continue the workflow, or else `otherwise`."""
    with suppress(RPCError, asyncio.TimeoutError):
        described = await asyncio.wait_for(handle.describe(), _DESCRIBED_WITHIN)
        if why := await why_stuck(handle, described):
            return cannot_continue(handle.id, why, ending)
    return otherwise


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _message(error: BaseException) -> str:
    """Return the message of an error in one line, without its class and without values of a request."""
    if not isinstance(error, ApplicationError):
        return " ".join(str(error).split())
    return describe_errors(error.message) if error.type == "ValidationError" else " ".join(error.message.split())
