"""Runs that break off: why, whether the same again may work, and how to get to the end all the same."""

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
    from sluice.contracts.run import Cause
    from sluice.publishing.outcomes import cause_of

_T = TypeVar("_T")


class RunStopped(Exception):
    """Raised when the run must not publish, as an outcome and not as an error."""

    def __init__(self, cause: Cause, reason: str) -> None:
        super().__init__(reason)
        self.cause = cause


async def run_shielded(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a piece of work to its end although the run may be cancelled meanwhile."""
    task = asyncio.create_task(work)
    while True:
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.done():
                raise


def raise_if_cancelled() -> None:
    """Stop here if the run was cancelled while a step finished all the same."""
    if workflow.cancellation_reason() is not None:
        raise CancelledError("cancelled")


def explain_error(error: BaseException) -> tuple[Cause, str]:
    """Return why a run broke off, and how to say it."""
    if isinstance(error, RunStopped):
        return error.cause, str(error)
    if workflow.cancellation_reason() is not None:  # it may show as a time-out, where the worker died with it
        return "cancelled", workflow.cancellation_reason() or "cancelled on request"
    kind, words = root_cause(error)
    return cause_of(kind), words


def root_cause(error: BaseException) -> tuple[str, str]:
    """Return the type and message of what an activity said, or else of what stopped it."""
    kind, words = type(error).__name__, str(error)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ApplicationError) and cause.type:
            return cause.type, cause.message
        if str(cause) and not isinstance(cause, ActivityError):
            kind, words = type(cause).__name__, str(cause)
        cause = cause.__cause__
    return kind, words


def is_retryable(error: ActivityError) -> bool:
    """Return whether the same again may work."""
    cause = error.cause
    return not is_cancelled(error) and not (isinstance(cause, ApplicationError) and cause.non_retryable)


def was_never_started(error: ActivityError) -> bool:
    """Return whether an attempt was handed to a worker that never gave a sign of life: one paused, or just dead."""
    cause = error.cause
    if not isinstance(cause, TimeoutError) or cause.type != TimeoutType.HEARTBEAT:
        return False
    return not cause.last_heartbeat_details


def is_cancelled(error: BaseException) -> bool:
    """Return whether the run was cancelled: a worker that shuts down cancels its activities too."""
    return workflow.cancellation_reason() is not None and is_cancelled_exception(error)
