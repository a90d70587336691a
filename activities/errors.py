"""Mapping of errors to Temporal's application errors, either retryable or final.

One interceptor of the worker maps the errors of all activities, so an activity simply raises the errors of the domain.
"""

import functools
import inspect
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, FailureError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from activities.heartbeats import missed_heartbeats
from lakehouse.iceberg.store_errors import explain_store_error
from sluice.errors import ServiceUnavailable, SluiceError
from sluice.redaction import redacted
from sluice.row_values import mask_values

_log = logging.getLogger("sluice.activity")
_UNEXPECTED_ATTEMPTS = 5
"""Maximum number of tries of an activity that end with an unexpected error.

A store may fail once, but a bug fails each time. Tries that were lost with their worker, or that failed because a
service was unavailable, do not count.
"""
_QUOTE_ROWS = ("duckdb", "_duckdb", "pyarrow")
"""Libraries that quote values of rows in their errors. Only the worker's log gets these errors unmasked."""
_PASSING = (
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.ABORTED,
)
"""Answers of a Temporal server that is unavailable or busy. They do not count as unexpected errors."""
_REMEMBERED = 10_000
_start: ContextVar[float] = ContextVar("_start")
_unexpected: dict[tuple[str | None, str], int] = {}
"""Number of unexpected errors in this process, by run and activity. Errors in other workers are not included."""


def overdue() -> bool:
    """Return True if this try has exceeded a time-out, for example after a pause of the process.

    Temporal has given up such a try.
    """
    limit = activity.info().start_to_close_timeout
    start = _start.get(None)
    is_late = limit is not None and start is not None and time.monotonic() - start > limit.total_seconds()
    return is_late or missed_heartbeats()


class ErrorMapping(Interceptor):
    """Interceptor that maps the errors of each activity to application errors of Temporal."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Wrap the execution of an activity."""
        return _Mapped(next)


class _Mapped(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        return await super().execute_activity(replace(input, fn=with_mapped_errors(input.fn)))


def with_mapped_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the function of an activity so that it raises only application errors of Temporal."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def run_async(*args: Any) -> Any:
            with as_application_error():
                return await function(*args)

        return run_async

    @functools.wraps(function)
    def run(*args: Any) -> Any:  # in the thread of the activity, where `overdue` reads its start
        with as_application_error():
            return function(*args)

    return run


@contextmanager
def as_application_error() -> Iterator[None]:
    """Map every error to an application error of Temporal, with the name of its type and whether to retry it.

    The traceback goes to the worker's log and not to the history, because it may contain secrets.
    """
    token = _start.set(time.monotonic())
    try:
        yield
    except FailureError:
        raise
    except SluiceError as error:
        raise _application_error(error, str(error), type(error).__name__, not error.is_retryable) from None
    except Exception as error:
        if isinstance(error, RPCError) and error.status in _PASSING:
            message = f"Temporal does not answer: {error}"
            raise _application_error(error, message, ServiceUnavailable.__name__, final=False) from None
        if isinstance(error, OSError) and (explained := explain_store_error(error)):
            raise _application_error(error, str(explained), type(explained).__name__, final=False) from None
        kind = type(error).__name__
        text = mask_values(str(error)) if type(error).__module__.startswith(_QUOTE_ROWS) else str(error)
        raise _application_error(error, f"{kind}: {text}", kind, _count_unexpected() >= _UNEXPECTED_ATTEMPTS) from None
    finally:
        _start.reset(token)  # what runs in this context later has a start of its own


def _count_unexpected() -> int:
    """Count an unexpected error of the current activity; return the number of its errors so far."""
    key = (activity.info().workflow_run_id, activity.info().activity_id)
    count = _unexpected.pop(key, 0) + 1
    while len(_unexpected) >= _REMEMBERED:
        _unexpected.pop(next(iter(_unexpected)), None)
    _unexpected[key] = count
    return count


def _application_error(error: Exception, message: str, kind: str, final: bool) -> ApplicationError:
    _log.warning("%s: %s", kind, message, exc_info=error)
    return ApplicationError(redacted(message), type=kind, non_retryable=final)
