"""Describe what a check observed, as messages show it; verdicts and signatures stay as they are."""

from sluice.checks import REGISTRY
from sluice.checks.verdicts import CheckResult
from sluice.sizes import format_count


def describe_observed(check: CheckResult) -> str:
    """Return what a check observed: a number of rows as `3 bad rows`, anything else as it is."""
    kind = REGISTRY.get(check.check)
    if kind is None or not kind.row_level or check.failed_rows is None or check.observed != check.failed_rows:
        return str(check.observed)
    return format_count(check.failed_rows, "bad row")
