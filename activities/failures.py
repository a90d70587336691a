"""Telling Temporal which errors may pass and which never will."""

from collections.abc import Iterator
from contextlib import contextmanager

from pynessie.error import NessieException
from temporalio import activity
from temporalio.exceptions import ApplicationError, FailureError

from lakehouse.nessie import NoSuchBranch
from lakehouse.nessie_v2 import RefusedByNessie
from sluice.errors import SluiceError, Terminal

_TRIES = 5
"""How often an error that nobody foresaw is tried again: a store may hiccup, but a bug stays one."""


@contextmanager
def told_to_temporal() -> Iterator[None]:
    """Turn every error into Temporal's: its type by name, and whether the same again may work."""
    try:
        yield
    except FailureError:
        raise
    except NoSuchBranch as error:
        raise ApplicationError(f"the branch {error} is gone", type="NoSuchBranch", non_retryable=True) from error
    except (NessieException, RefusedByNessie) as error:  # an overloaded Nessie is ServiceUnavailable by now
        raise ApplicationError(str(error), type="RefusedByNessie", non_retryable=True) from error
    except SluiceError as error:
        final = isinstance(error, Terminal)
        raise ApplicationError(str(error), type=type(error).__name__, non_retryable=final) from error
    except Exception as error:
        kind = type(error).__name__
        final = activity.info().attempt >= _TRIES
        raise ApplicationError(f"{kind}: {error}", type=kind, non_retryable=final) from error
