"""Values of rows in messages: hidden unless the pipeline shows them, while the rest of the message stays."""

from pathlib import Path

import pytest

from engine.job import JobResult
from engine.spark.job_errors import job_failure
from sluice.checks.registry import REGISTRY
from sluice.checks.verdicts import CheckResult, with_whole_samples
from sluice.errors import InvalidInput
from sluice.publishing.outcomes import describe_blocking_checks
from sluice.row_values import mask_error, mask_values


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            "[CAST_INVALID_INPUT] The value 'O\\'Brien 47' of the type \"STRING\" cannot be cast to \"DECIMAL(10,2)\"",
            "[CAST_INVALID_INPUT] The value '…' of the type \"STRING\" cannot be cast to \"DECIMAL(10,2)\"",
        ),
        (
            "[CAST_OVERFLOW] The value 4711L of the type \"BIGINT\" cannot be cast to \"INT\"",
            "[CAST_OVERFLOW] The value … of the type \"BIGINT\" cannot be cast to \"INT\"",
        ),
        (
            "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are detected: [4711,meier].",
            "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] …",
        ),
        ("[USER_RAISED_EXCEPTION] customer meier is bad", "[USER_RAISED_EXCEPTION] …"),
        ('NumberFormatException: For input string: "meier"', "NumberFormatException: For input string: …"),
        ("DateTimeParseException: Text 'O'Brien' is no date", "DateTimeParseException: Text '…' is no date"),
        (
            "java.net.ConnectException: Connection refused: /127.0.0.1:19120",
            "java.net.ConnectException: Connection refused: /127.0.0.1:19120",
        ),
        (
            "NotFoundException: File does not exist: s3://lake/t/data/00000-1-abc.parquet",
            "NotFoundException: File does not exist: s3://lake/t/data/00000-1-abc.parquet",
        ),
    ],
)  # fmt: skip
def test_messages_of_spark(message: str, shown: str) -> None:
    assert mask_values(message) == shown
    assert mask_values(shown) == shown


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("ValueError: customer 4711 meier has no address", "ValueError: …"),
        ("my.module.BadRow: meier", "its last line: …"),
        ("4711,meier,1975", "its last line: …"),
        ("ModuleNotFoundError: No module named 'jinja'", "ModuleNotFoundError: No module named 'jinja'"),
        (
            "pyspark.errors.exceptions.captured.AnalysisException: [UNRESOLVED_COLUMN] `nmae`. Did you mean `name`?",
            "[UNRESOLVED_COLUMN] `nmae`. Did you mean `name`?",
        ),
        (
            "pyspark.errors.exceptions.captured.NumberFormatException: [CAST_INVALID_INPUT] The value 'meier' of",
            "[CAST_INVALID_INPUT] The value '…' of",
        ),
        ("InvalidPipelineError: spark.x cannot be set for one job", "spark.x cannot be set for one job"),
    ],
)
def test_errors_of_programs(line: str, shown: str) -> None:
    assert shown in mask_error(line)
    assert "meier" not in mask_error(line) and "4711" not in mask_error(line)
    result = JobResult(1, [line], Path("log"))
    assert shown in str(job_failure(result))
    assert line.removeprefix("pyspark.errors.exceptions.captured.") in str(job_failure(result, show_values=True))


def test_a_cause_behind_an_error_shows_its_class_alone() -> None:
    error = "py4j.protocol.Py4JJavaError: An error occurred while calling o1.count."
    cause = "Caused by: java.lang.RuntimeException: customer Alice Smith has no address"
    result = JobResult(1, [error, cause], Path("log"))
    assert "Alice" not in str(job_failure(result)) and "RuntimeException: …" in str(job_failure(result))
    assert "Alice" in str(job_failure(result, show_values=True))


def test_what_decides_about_another_attempt_is_not_hidden_with_the_values() -> None:
    assert isinstance(job_failure(JobResult(1, ["x.AnalysisException: [A_B] no"], Path("log"))), InvalidInput)


OBSERVE_VALUES = {
    "mean_in_range",
    "sum_in_range",
    "stddev_in_range",
    "quantile_in_range",
    "min_in_range",
    "max_in_range",
    "freshness",
    "changed_partitions",
}
"""Checks that observe a value of rows, or a value computed from rows. A new check of this kind belongs here."""


def test_the_checks_that_observe_values() -> None:
    assert {name for name, check in REGISTRY.items() if check.observes_values} == OBSERVE_VALUES


@pytest.mark.parametrize("name", [*sorted(OBSERVE_VALUES), "a_check_of_another_version"])
def test_a_reason_says_which_check_failed_and_not_what_it_observed(name: str) -> None:
    check = CheckResult(table="t.x", check=name, columns=["a"], verdict="fail", observed="meier", expected="at most b")
    assert f"{name}(a) of t.x: observed …, expected at most b" in describe_blocking_checks([check])
    assert "observed meier" in describe_blocking_checks([check], show_values=True)
    counted = check.model_copy(update={"check": "not_null", "observed": 3})
    assert "observed 3" in describe_blocking_checks([counted])


def test_a_job_that_writes_to_the_lake_changes_no_verdict() -> None:
    """The whole report takes samples from the report store, and verdicts from the history."""
    failed = CheckResult(table="t.x", index=0, check="unique", columns=["a"], verdict="fail", failed_rows=9)
    forged = failed.model_copy(update={"verdict": "pass", "sample": [{"a": "forged"}]})
    stored = failed.model_copy(update={"sample": [{"a": 1}, {"a": 2}]})
    assert with_whole_samples([failed], [forged]) == [failed]
    assert with_whole_samples([failed], [stored]) == [stored]
