"""Reading from the last lines of a job what went wrong, and whether trying again can help."""

import re

from sluice.errors import InvalidInput, JobFailed, SluiceError

_EXCEPTION = re.compile(r"^[\w.$]*(?:Error|Exception)\b.*: .+")
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\] .+")
_FINAL = (
    "AnalysisException",
    "ParseException",
    "SyntaxError",
    "ImportError",
    "ModuleNotFoundError",
    "NameError",
)
"""Errors that the same program on the same data raises again."""


def job_failure(code: int, tail: list[str]) -> SluiceError:
    """Return the error for a job that ended with a code other than 0."""
    said = _last_error(tail)
    message = f"the Spark job ended with exit code {code}" + (f": {said}" if said else "")
    if said and any(name in said for name in _FINAL):
        return InvalidInput(message)
    return JobFailed(message)


def _last_error(tail: list[str]) -> str:
    for line in reversed(tail):
        stripped = line.strip()
        if _EXCEPTION.match(stripped) or _CONDITION.search(stripped):
            return stripped[:600]
    return tail[-1].strip()[:600] if tail else ""
