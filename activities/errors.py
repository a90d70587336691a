"""Mapping of errors to Temporal's application errors: which are retried, and which fail the activity at once."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from temporalio import activity
from temporalio.exceptions import ApplicationError, FailureError

from sluice.errors import SluiceError, Terminal
from sluice.secrets import redacted

_log = logging.getLogger("sluice.activity")
_UNEXPECTED_ATTEMPTS = 5
"""How often an activity with an unexpected error is tried: a store may fail once, but a bug fails each time."""
_start: ContextVar[float] = ContextVar("_start")


def overdue() -> bool:
    """Return whether this try has exceeded its time-out, as after a pause of the process: Temporal gave it up."""
    limit = activity.info().start_to_close_timeout
    return limit is not None and time.monotonic() - _start.get() > limit.total_seconds()


@contextmanager
def as_application_error() -> Iterator[None]:
    """Map every error to an application error of Temporal: its type by name, and whether it is retried.

    The traceback is written to the worker's log and not to the history, because it may hold secrets.
    """
    _start.set(time.monotonic())
    try:
        yield
    except FailureError:
        raise
    except SluiceError as error:
        raise _application_error(error, str(error), type(error).__name__, isinstance(error, Terminal)) from None
    except Exception as error:
        kind = type(error).__name__
        raise _application_error(
            error, f"{kind}: {error}", kind, activity.info().attempt >= _UNEXPECTED_ATTEMPTS
        ) from None


def _application_error(error: Exception, message: str, kind: str, final: bool) -> ApplicationError:
    _log.warning("%s: %s", kind, message, exc_info=error)
    return ApplicationError(redacted(message), type=kind, non_retryable=final)
