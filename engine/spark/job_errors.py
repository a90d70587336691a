"""Reading from the last lines of a job what went wrong, and whether trying again can help."""

import re

from sluice.errors import InvalidInput, JobFailed, SluiceError, WriteRefused

_EXCEPTION = re.compile(r"^[\w.$]*(?:Error|Exception)\b.*: .+")
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\] .+")
_REFUSED = re.compile(r"'(?P<op>[A-Z_]+)' is not allowed for role '[^']*' on \w+ '(?P<where>[^']*)'")
_FAR = re.compile(r"Application (?P<id>application_\w+) finished with")
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
    refused = next((found for line in tail if (found := _REFUSED.search(line))), None)
    if refused:
        return WriteRefused(
            f"the job tried to change {refused['where']!r}, and Nessie refused it ({refused['op']}): "
            "a job may write to the branch of its run alone"
        )
    said = _last_error(tail)
    message = f"the Spark job ended with exit code {code}" + (f": {said}" if said else "")
    if far := _FAR.search(said):
        message += f"; what its driver said is with YARN: yarn logs -applicationId {far['id']}"
    if said and any(name in said for name in _FINAL):
        return InvalidInput(message)
    return JobFailed(message)


def _last_error(tail: list[str]) -> str:
    for line in reversed(tail):
        stripped = line.strip()
        if _EXCEPTION.match(stripped) or _CONDITION.search(stripped):
            return stripped[:600]
    return tail[-1].strip()[:600] if tail else ""
