"""Describe the observed result of a check for messages. Verdicts and signatures stay unchanged."""

from sluice.checks.verdicts import CheckResult
from sluice.sizes import format_count


def describe_observed(check: CheckResult) -> str:
    """Return the observed result of a check: a number of bad rows as `3 bad rows`, anything else unchanged."""
    if check.failed_rows is None or check.observed != check.failed_rows:
        return str(check.observed)
    return format_count(check.failed_rows, "bad row")
