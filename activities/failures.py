"""Telling Temporal which errors may pass and which never will."""

from collections.abc import Iterator
from contextlib import contextmanager

from temporalio.exceptions import ApplicationError

from lakehouse.nessie import NoSuchBranch
from sluice.errors import SluiceError, Terminal


@contextmanager
def told_to_temporal() -> Iterator[None]:
    """Turn the domain's errors into Temporal's: their type by name, retried only if transient."""
    try:
        yield
    except NoSuchBranch as error:
        raise ApplicationError(f"the branch {error} is gone", type="NoSuchBranch", non_retryable=True) from error
    except SluiceError as error:
        final = isinstance(error, Terminal)
        raise ApplicationError(str(error), type=type(error).__name__, non_retryable=final) from error
