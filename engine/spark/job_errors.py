"""Tell from the last lines of a failed job why it failed, and whether another attempt can succeed."""

import re
from collections.abc import Iterable

from sluice.errors import InvalidInput, JobFailed, SluiceError, WriteRefused
from sluice.row_values import mask_error

_EXCEPTION = re.compile(r"^[\w.$]*(?:Error|Exception)\b.*: .+")
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\] .+")
_YARN_APPLICATION = re.compile(r"Application (?P<id>application_\w+) finished with")
_FINAL_ERRORS = (
    "AnalysisException",
    "ParseException",
    "SyntaxError",
    "ImportError",
    "ModuleNotFoundError",
    "NameError",
)
"""Errors that the same program raises again on the same data."""

_STORE_ABSENT = re.compile(
    r"Unable to execute HTTP request|"
    r"(?:S3Exception|AmazonS3|s3a).*(?:SlowDown|Slow Down|Service Unavailable|Status Code: 50[03])"
)
"""What the S3 clients of Iceberg and Hadoop say of a store that is away, or answers that it cannot serve."""


def store_absence(lines: Iterable[str]) -> str | None:
    """Return how the object store was away while a job ran, if one of its lines of output tells so."""
    absent = next((line.strip() for line in lines if _STORE_ABSENT.search(line)), None)
    return f"the object store was not there for the job: {absent[:500]}" if absent else None


def job_failure(code: int, tail: list[str], refused: str | None = None, *, show_values: bool = False) -> SluiceError:
    """Return the error for a job that ended with a code other than 0.

    Args:
        refused: what the catalog refused the job, if its output tells so.
        show_values: whether the message may quote values of rows.
    """
    if refused:
        return WriteRefused(f"{refused}: a job may write to the branch of its run alone")
    error = _last_error(tail)
    shown = error if show_values or not error else mask_error(error)
    message = f"the Spark job ended with exit code {code}" + (f": {shown}" if shown else "")
    if on_yarn := _YARN_APPLICATION.search(error):
        message += f"; the log of its driver is with YARN: yarn logs -applicationId {on_yarn['id']}"
    if error and any(name in error for name in _FINAL_ERRORS):
        return InvalidInput(message)
    return JobFailed(message)


def _last_error(tail: list[str]) -> str:
    for line in reversed(tail):
        stripped = line.strip()
        if _EXCEPTION.match(stripped) or _CONDITION.search(stripped):
            return stripped[:600]
    return tail[-1].strip()[:600] if tail else ""
