"""Telling Temporal which errors may pass and which never will."""

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
_TRIES = 5
"""How often an error that nobody foresaw is tried again: a store may hiccup, but a bug stays one."""
_began: ContextVar[float] = ContextVar("_began")


def overdue() -> bool:
    """Return whether Temporal gave up on this try meanwhile, as it does while a process is paused."""
    limit = activity.info().start_to_close_timeout
    return limit is not None and time.monotonic() - _began.get() > limit.total_seconds()


@contextmanager
def as_application_error() -> Iterator[None]:
    """Turn every error into Temporal's: its type by name, and whether the same again may work.

    What it came from goes into the worker's log and not into the history: it may hold what is nobody's to see.
    """
    _began.set(time.monotonic())
    try:
        yield
    except FailureError:
        raise
    except SluiceError as error:
        raise _told(error, str(error), type(error).__name__, isinstance(error, Terminal)) from None
    except Exception as error:
        kind = type(error).__name__
        raise _told(error, f"{kind}: {error}", kind, activity.info().attempt >= _TRIES) from None


def _told(error: Exception, words: str, kind: str, final: bool) -> ApplicationError:
    _log.warning("%s: %s", kind, words, exc_info=error)
    return ApplicationError(redacted(words), type=kind, non_retryable=final)
