"""The cause of a job's failure: the job itself, or an unavailable catalog or object store."""

from pathlib import Path
from typing import Any

import pytest

from engine.job import JobResult
from engine.spark.built_in_job import describe_absence
from engine.spark.job_errors import store_absence
from lakehouse.nessie.spark import explain_absence
from sluice.contracts.spark_jobs import JobAnswer
from spark_jobs.job import error_answer
from tests.harness.bound_catalog import FakeCatalog

REFUSED_CONNECTION = """An error occurred while calling o63.sql.
: org.projectnessie.client.http.HttpClientException: Failed to execute GET request against \
'http://127.0.0.1:19120/api/v2/trees/wap%2Fx%2Fr%2Fa1'.
\tat org.projectnessie.client.http.impl.jdk11.JavaRequest.sendAndReceive(JavaRequest.java:132)
Caused by: java.net.ConnectException
\tat java.net.http/jdk.internal.net.http.HttpClientImpl.send(HttpClientImpl.java:573)
Caused by: java.nio.channels.ClosedChannelException
"""


class Catalog(FakeCatalog):
    """A catalog that recognises Nessie's error messages."""

    explain_absence = staticmethod(explain_absence)  # type: ignore[assignment]  # a function, not a method


@pytest.mark.parametrize(
    "line",
    [
        "org.projectnessie.client.http.HttpClientException: Failed to execute POST request against "
        "'http://n:19120/api/v2/trees/wap%2Fx/history/commit'.",
        "HttpClientException: Timeout connecting to 'http://n/api/v2/config' after 5s",
        "Cannot finish GET request against 'http://n/api/v2/trees'. Timeout while waiting for response",
        "Caused by: org.projectnessie.client.rest.NessieServiceException: Service Unavailable (HTTP/503): starting",
        "org.projectnessie.client.rest.NessieInternalServerException: Internal Server Error (HTTP/500): x",
    ],
)
def test_a_nessie_that_is_away_is_known_by_its_clients_words(line: str) -> None:
    assert (explain_absence(["before", line, "after"]) or "").startswith("Nessie was unavailable to the job: ")


@pytest.mark.parametrize(
    "line",
    [
        "java.lang.OutOfMemoryError: Java heap space",
        "requests.exceptions.ConnectionError: Connection refused: https://api.example.com/prices",
        "PricesError: the service answered (HTTP/503)",
        "org.projectnessie.error.NessieReferenceNotFoundException: Named reference 'wap/x' not found (HTTP/404)",
        "org.apache.iceberg.exceptions.CommitFailedException: Cannot commit: Reference hash is out of date",
    ],
)
def test_what_a_job_does_wrong_is_not_taken_for_that(line: str) -> None:
    assert explain_absence([line]) is None
    assert store_absence([line]) is None


@pytest.mark.parametrize(
    "line",
    [
        "software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request: Connect refused",
        "software.amazon.awssdk.services.s3.model.S3Exception: Please reduce your request rate (Service: S3, "
        "Status Code: 503, Request ID: x)",
    ],
)
def test_an_object_store_that_is_away(line: str) -> None:
    assert (store_absence([line]) or "").startswith("the object store was unavailable to the job: ")


def test_credentials_that_expired_under_a_job() -> None:
    line = (
        "software.amazon.awssdk.services.s3.model.S3Exception: The provided token has expired. (Service: S3, Status "
        "Code: 400, Request ID: x)"
    )
    assert (store_absence([line]) or "").startswith(
        "the object store refuses the job's credentials, which have expired"
    )


def failed(answer: JobAnswer | None, *tail: str) -> str | None:
    return describe_absence(Catalog(), answer, JobResult(1, list(tail), Path("log")))


def test_the_answer_of_a_built_in_job_tells_it_although_its_message_is_short() -> None:
    answer = error_answer(RuntimeError(REFUSED_CONNECTION))
    assert answer.error_kind == "JobFailed"
    assert [each.split(":")[0] for each in answer.causes] == [
        "org.projectnessie.client.http.HttpClientException",
        "java.net.ConnectException",
        "java.nio.channels.ClosedChannelException",
    ]
    assert failed(answer)


def test_a_job_without_an_answer_tells_it_by_its_log() -> None:
    assert failed(None, *REFUSED_CONNECTION.splitlines())
    assert not failed(None, "java.lang.OutOfMemoryError: Java heap space")


@pytest.mark.parametrize("kind", ["InvalidInput", "InvalidPipeline", "NothingToDo"])
def test_an_answer_that_blames_the_input_is_believed(kind: Any) -> None:
    """A row may contain any text, including the error message of an unavailable service."""
    assert failed(JobAnswer(error=f"cannot cast {REFUSED_CONNECTION!r}", error_kind=kind)) is None
