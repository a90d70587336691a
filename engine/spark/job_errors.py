"""Tell from the last lines of a failed job why it failed, and whether another attempt can succeed."""

import re

from sluice.errors import InvalidInput, JobFailed, SluiceError, WriteRefused

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


def job_failure(code: int, tail: list[str], refused: str | None = None) -> SluiceError:
    """Return the error for a job that ended with a code other than 0.

    Args:
        refused: what the catalog refused the job, if its output tells so.
    """
    if refused:
        return WriteRefused(f"{refused}: a job may write to the branch of its run alone")
    error = _last_error(tail)
    message = f"the Spark job ended with exit code {code}" + (f": {error}" if error else "")
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
