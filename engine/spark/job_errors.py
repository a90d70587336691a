"""Determine from the last lines of a failed job why it failed, and whether another attempt can succeed."""

import re
from collections.abc import Iterable
from pathlib import Path

from engine.job import JobResult
from sluice.errors import InvalidInput, JobFailed, SluiceError, WriteRefused
from sluice.row_values import mask_cause, mask_error
from sluice.store_trouble import is_expiry

_EXCEPTION = re.compile(r"^[\w.$]*(?:Error|Exception)\b.*: .+")
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\] .+")
_FRAME = re.compile(r'\s*File "(?P<file>[^"]+)", line (?P<line>\d+)')
_LIBRARY = re.compile(r"^(?:java|javax|org|pyspark|py4j|scala|software)\.[\w.$]*?(?=\w+(?:Error|Exception)\b)")
"""The package of an error's class, which does not help the author of the program."""
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
    r"(?:S3Exception|AmazonS3|s3a).*(?:SlowDown|Slow Down|Service Unavailable|Status Code: 50[03])|"
    r"(?:S3Exception|AmazonS3|s3a).*(?:ExpiredToken|token has expired|TokenRefreshRequired)"
)
"""Errors of Iceberg's and Hadoop's S3 clients for a store that is unreachable, or that answers that it cannot serve."""


def store_absence(lines: Iterable[str]) -> str | None:
    """Return why the object store was unavailable during a job, or None if the job's output does not say that."""
    absent = next((line.strip() for line in lines if _STORE_ABSENT.search(line)), None)
    if absent is None:
        return None
    why = (
        "refuses the job's credentials, which have expired: renew them"
        if is_expiry(absent)
        else "was unavailable to the job"
    )
    return f"the object store {why}: {absent[:500]}"


def job_failure(
    result: JobResult, refused: str | None = None, *, program: Path | None = None, show_values: bool = False
) -> SluiceError:
    """Return the error for a job that ended with a code other than 0.

    Args:
        refused: description of the write that the catalog refused, or None if the job's output mentions none.
        program: the user's program; the message names the line that failed.
        show_values: True if the message may quote values of rows.
    """
    if refused:
        return WriteRefused(f"{refused}: a job may write only to the branch of its run")
    error, is_cause = _last_error(result.tail)
    hide = mask_cause if is_cause else mask_error
    shown = _LIBRARY.sub("", error if show_values or not error else hide(error))
    message = f"the Spark job ended with exit code {result.code}{_location(result.tail, program)}"
    message += f": {shown}" if shown else ""
    if on_yarn := _YARN_APPLICATION.search(error):
        message += f"; YARN has the log of its driver: yarn logs -applicationId {on_yarn['id']}"
    else:
        message += f"; the whole log: {result.log}"
    if error and any(name in error for name in _FINAL_ERRORS):
        return InvalidInput(message)
    return JobFailed(message)


def _last_error(tail: list[str]) -> tuple[str, bool]:
    """Return the last error that a job printed, and True if Java printed it as the cause of another error."""
    for line in reversed(tail):
        whole = line.strip()
        stripped = whole.removeprefix(": ").removeprefix("Caused by: ")
        if _EXCEPTION.match(stripped) or _CONDITION.search(stripped):
            return stripped[:600], stripped != whole
    return (tail[-1].strip()[:600] if tail else ""), False


def _location(tail: list[str], program: Path | None) -> str:
    """Return the line of a program in the last traceback, as ` at prices.py, line 12`, or an empty text."""
    frames = [frame for line in tail if (frame := _FRAME.match(line))]
    own = [frame for frame in frames if program and Path(frame["file"]).name == program.name]
    return f" at {program.name}, line {own[-1]['line']}" if program and own else ""
