"""What checks observed, as messages show it.

The verdicts themselves, and what is signed of them, stay as they are.
"""

from collections.abc import Sequence

from sluice.audit.verdicts import CheckResult
from sluice.checks import REGISTRY
from sluice.sizes import format_count

_NAMED = 3


def describe_observed(check: CheckResult) -> str:
    """Return what a check observed: a number of rows as `3 bad rows`, anything else as it is."""
    kind = REGISTRY.get(check.check)
    if kind is None or not kind.row_level or check.failed_rows is None or check.observed != check.failed_rows:
        return str(check.observed)
    return format_count(check.failed_rows, "bad row")


def describe_warnings(checks: Sequence[CheckResult]) -> str:
    """Return which checks warned: `unique(id) of t.x`; of many, a few and the number of the others."""
    named = [f"{check.title} of {check.table}" for check in checks if check.verdict == "warn"]
    more = [f"and {len(named) - _NAMED} more"] if len(named) > _NAMED else []
    return ", ".join([*named[:_NAMED], *more])
