"""Describe the checks that warned."""

from collections.abc import Sequence

from sluice.checks.verdicts import CheckResult

_NAMED = 3


def describe_warnings(checks: Sequence[CheckResult]) -> str:
    """Return which checks warned: `unique(id) of t.x`; of many, a few and the number of the others."""
    named = [f"{check.title} of {check.table}" for check in checks if check.verdict == "warn"]
    more = [f"and {len(named) - _NAMED} more"] if len(named) > _NAMED else []
    return ", ".join([*named[:_NAMED], *more])
