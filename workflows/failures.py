"""Failures of a run: their causes, the decision about another attempt, and the handling of cancellation."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    TimeoutError,
    TimeoutType,
    is_cancelled_exception,
)

with workflow.unsafe.imports_passed_through():
    from sluice.causes import Cause
    from sluice.errors import error_class
    from sluice.publishing.retries import NO_WORKER, TIMED_OUT, WORKER_LOST, WORKER_STOPPED, AttemptFailure

_T = TypeVar("_T")
REFUSED_REQUEST = "RefusedRequest"
"""Type of the failure of a workflow whose request the worker refuses."""
_DRAINED = "Worker shutting down"
"""Message of the failure of a task that a worker accepted while it stopped. Temporal's SDK gives it no type."""


class RunStopped(Exception):
    """Raised to end the run without a publication, as an outcome and not as an error."""

    def __init__(self, cause: Cause, reason: str) -> None:
        super().__init__(reason)
        self.cause = cause


async def run_shielded(work: Coroutine[Any, Any, _T]) -> _T:
    """Run work to its end even if the run is cancelled meanwhile."""
    task = asyncio.create_task(work)
    while True:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.done():
                raise


def raise_if_cancelled() -> None:
    """Raise if the run was cancelled during a step that completed anyway."""
    if workflow.cancellation_reason() is not None:
        raise CancelledError("cancelled")


def explain_error(error: BaseException) -> tuple[Cause, str]:
    """Return the cause and the reason of a run that failed, was stopped or was cancelled."""
    if isinstance(error, RunStopped):
        return error.cause, str(error)
    if workflow.cancellation_reason() is not None:  # a cancellation may appear as a time-out if the worker died, too
        return "cancelled", workflow.cancellation_reason() or "cancelled on request"
    kind, message = root_cause(error)
    return error_class(kind).cause, message


def root_cause(error: BaseException) -> tuple[str, str]:
    """Return the type and message of the error that an activity raised, or else of the last error in the chain."""
    kind, message = type(error).__name__, str(error)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ApplicationError) and cause.type:
            return cause.type, cause.message
        if str(cause) and not isinstance(cause, ActivityError):
            kind, message = type(cause).__name__, str(cause)
        cause = cause.__cause__
    return kind, message


def refusal_of(error: BaseException | None) -> str:
    """Return the reason why the worker refused a workflow that was started; empty for any other end of it."""
    while error is not None:
        if isinstance(error, ApplicationError) and error.type == REFUSED_REQUEST:
            return error.message
        error = error.__cause__
    return ""


def is_retryable(error: ActivityError) -> bool:
    """Return True if another attempt may succeed."""
    cause = error.cause
    return not is_cancelled(error) and not (isinstance(cause, ApplicationError) and cause.non_retryable)


def attempt_failure(error: ActivityError) -> AttemptFailure:
    """Return the failure of an activity in the form that the domain uses to decide about another attempt."""
    kind, message = root_cause(error)
    cause = error.cause
    if isinstance(cause, TimeoutError) and cause.type == TimeoutType.HEARTBEAT:
        kind, message = WORKER_LOST, "no heartbeat of its worker arrived in time"
    elif isinstance(cause, TimeoutError) and cause.type == TimeoutType.SCHEDULE_TO_START:
        kind, message = (
            NO_WORKER,
            f"no worker started {error.activity_type} in time: check that one runs for its task queue",
        )
    elif isinstance(cause, TimeoutError) and cause.type == TimeoutType.START_TO_CLOSE:
        kind, message = TIMED_OUT, f"{error.activity_type} took longer than its time-out"
    elif isinstance(cause, CancelledError) or message == _DRAINED:
        kind, message = WORKER_STOPPED, "its worker was stopped"
    return AttemptFailure(kind=kind, message=message, is_retryable=is_retryable(error) and kind != NO_WORKER)


def is_cancelled(error: BaseException) -> bool:
    """Return True if the run itself was cancelled. A worker that shuts down cancels its activities, too."""
    return workflow.cancellation_reason() is not None and is_cancelled_exception(error)
