"""The errors that are retried: every error of the layers below is mapped."""

import uuid
from dataclasses import replace

import duckdb
import pynessie.error
import pytest
import requests
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment

from activities.errors import as_application_error
from lakehouse.iceberg_catalog.commit_log import NoSuchCommit
from lakehouse.nessie.errors import NessieRequestRefused, translate_nessie_errors
from sluice import errors
from sluice.causes import Cause
from sluice.publishing.retries import AttemptFailure
from tests.harness.activity import run_activity


def converted(error: Exception, attempt: int = 1, activity_id: str = "") -> tuple[str | None, bool]:
    """Return the error type that Temporal gets, and True if Temporal may retry."""
    environment = ActivityEnvironment()
    activity_id = activity_id or uuid.uuid4().hex
    environment.info = replace(environment.info, attempt=attempt, activity_id=activity_id)

    def fail() -> None:
        with as_application_error(), translate_nessie_errors("http://n"):
            raise error

    with pytest.raises(ApplicationError) as raised:
        environment.run(fail)
    return raised.value.type, not raised.value.non_retryable


def nessie_error(kind: type[pynessie.error.NessieException], status: int) -> pynessie.error.NessieException:
    return kind({"message": "no"}, status, "http://n", "reason")


@pytest.mark.parametrize(
    ("error", "kind", "again"),
    [
        (requests.ConnectionError(), "ServiceUnavailable", True),
        (requests.ReadTimeout(), "ServiceUnavailable", True),
        (nessie_error(pynessie.error.NessieServerException, 503), "ServiceUnavailable", True),
        (nessie_error(pynessie.error.NessieException, 429), "ServiceUnavailable", True),
        (nessie_error(pynessie.error.NessieException, 400), "CatalogRefused", False),
        (NessieRequestRefused(400, "no"), "CatalogRefused", False),
        (errors.NoSuchBranch("b"), "NoSuchBranch", False),
        (OSError("disk"), "OSError", True),
    ],
)
def test_errors_from_below(error: Exception, kind: str, again: bool) -> None:
    assert converted(error) == (kind, again)


ERRORS: dict[str, tuple[bool, Cause, errors.Blame]] = {
    "SluiceError": (True, "error", "job"),
    "Terminal": (False, "error", "job"),
    "InvalidPipeline": (False, "invalid", "job"),
    "NotDeployed": (False, "invalid", "job"),
    "InvalidInput": (False, "invalid", "job"),
    "InputChanged": (False, "input_changed", "job"),
    "InputIncomplete": (False, "invalid", "job"),
    "NoFiles": (False, "invalid", "job"),
    "AlreadyPublished": (False, "already_published", "job"),
    "ManifestUnreadable": (False, "invalid", "job"),
    "RunUnderWay": (False, "error", "job"),
    "NothingToDo": (False, "nothing_to_do", "job"),
    "NothingWritten": (False, "invalid", "job"),
    "UnexpectedWrite": (False, "error", "job"),
    "WriteRefused": (False, "invalid", "job"),
    "Unapproved": (False, "error", "job"),
    "BadEnvironment": (False, "invalid", "job"),
    "NoSuchBranch": (False, "error", "job"),
    "CatalogRefused": (False, "error", "job"),
    "CatalogChanged": (False, "error", "job"),
    "TableReplaced": (False, "error", "job"),
    "RegistrationRefused": (False, "error", "job"),
    "MessageRefused": (False, "error", "job"),
    "Transient": (True, "error", "job"),
    "ServiceUnavailable": (True, "unreachable", "service"),
    "CredentialsExpired": (True, "unreachable", "service"),
    "DiskFull": (True, "error", "worker"),
    "SparkServerCrashed": (True, "error", "shared server"),
    "JobFailed": (True, "error", "job"),
    "CommandFailed": (True, "error", "job"),
}
"""By error: True if a retry may succeed, the cause of a run that ends with the error, and the blame for an attempt."""


def below(kind: type[errors.SluiceError]) -> set[type[errors.SluiceError]]:
    """Return a class of errors, and all its subclasses."""
    return {kind}.union(*map(below, kind.__subclasses__()))


@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_the_domain(name: str) -> None:
    kind, (is_retryable, cause, blame) = errors.error_class(name), ERRORS[name]
    assert (kind.__name__, kind.is_retryable, kind.cause, kind.blame) == (name, is_retryable, cause, blame)
    assert AttemptFailure(name, "x").blame == blame
    assert converted(kind("x")) == (name, is_retryable)
    assert name in (errors.__doc__ or "")


def test_every_error_of_the_domain_is_listed_and_is_final_or_not() -> None:
    listed = {errors.error_class(name) for name in ERRORS}
    assert {each for each in below(errors.SluiceError) if each.__module__ == errors.__name__} == listed
    assert all(issubclass(each, errors.Terminal | errors.Transient) for each in listed - {errors.SluiceError})


def test_an_error_of_an_adapter_has_the_cause_and_blame_that_a_workflow_derives_from_its_name() -> None:
    """A workflow knows only the names of the domain's errors."""
    assert NoSuchCommit in below(errors.SluiceError)
    for each in below(errors.SluiceError):
        if each.__module__.startswith(("lakehouse", "engine", "activities", "runtime")):
            known = errors.error_class(each.__name__)
            assert (each.cause, each.blame) == (known.cause, known.blame), each


@pytest.mark.parametrize("name", ["", "KeyError", "TimeoutError", "ClassVar", "error_class"])
def test_a_name_that_no_error_of_the_domain_has(name: str) -> None:
    assert errors.error_class(name) is errors.SluiceError and errors.error_class(name).cause == "error"


def test_a_bug_is_not_tried_for_ever() -> None:
    tries = [converted(KeyError("x"), attempt, "a bug") for attempt in range(1, 6)]
    assert tries == [*[("KeyError", True)] * 4, ("KeyError", False)]


def test_a_temporal_server_that_is_away_or_busy_is_tried_again() -> None:
    """It may be away for longer than a few tries last, and a cancel that waits for it must not be lost."""
    for status, kind in ((RPCStatusCode.UNAVAILABLE, "ServiceUnavailable"), (RPCStatusCode.INTERNAL, "RPCError")):
        for _ in range(9):
            assert converted(RPCError("no", status, b""), activity_id=f"a-{status}")[0] == kind
        is_again = converted(RPCError("no", status, b""), activity_id=f"a-{status}")[1]
        assert is_again == (kind == "ServiceUnavailable")


def test_tries_that_were_lost_do_not_make_an_error_final() -> None:
    """The fifth try may be the first that reports anything: the others were lost with workers and services."""
    assert converted(OSError("a store that failed once"), attempt=50) == ("OSError", True)


def test_a_library_that_reads_rows_does_not_quote_them() -> None:
    """The worker's log has the whole message."""

    def fail() -> None:
        with as_application_error():
            raise duckdb.ConversionException("Could not convert string 'meier' to INT32")

    with pytest.raises(ApplicationError) as raised:
        run_activity(fail)
    assert raised.value.message == "ConversionException: Could not convert string '…' to INT32"
