"""Hide the values of rows that a check observed from messages that may not quote them."""

from sluice.audit.observed import describe_observed
from sluice.checks.registry import REGISTRY
from sluice.checks.verdicts import CheckResult
from sluice.row_values import HIDDEN_VALUE


def observed_text(check: CheckResult, *, show_values: bool) -> str:
    """Return the observation of a check, hidden if it consists of values of rows that may not be shown."""
    known = REGISTRY.get(check.check)
    may_show = show_values or (known is not None and not known.observes_values)
    return describe_observed(check) if may_show else HIDDEN_VALUE
