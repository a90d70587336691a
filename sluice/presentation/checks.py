"""Describe the checks that warned."""

from collections.abc import Sequence

from sluice.checks.verdicts import CheckResult

_NAMED = 3


def describe_warnings(checks: Sequence[CheckResult]) -> str:
    """Name the checks that warned: `unique(id) of t.x`. If there are many, name some and count the others."""
    named = [f"{check.title} of {check.table}" for check in checks if check.verdict == "warn"]
    more = [f"and {len(named) - _NAMED} more"] if len(named) > _NAMED else []
    return ", ".join([*named[:_NAMED], *more])
