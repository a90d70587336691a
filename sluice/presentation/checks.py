"""Describe the checks that warned, and hint at checks that were probably meant."""

from collections.abc import Sequence

from sluice.checks.verdicts import CheckResult
from sluice.sizes import format_list

_NAMED = 3


def describe_warnings(checks: Sequence[CheckResult]) -> str:
    """Name the checks that warned: `unique(id) of t.x`. If there are many, name some and count the others."""
    named = [f"{check.title} of {check.table}" for check in checks if check.verdict == "warn"]
    return format_list(named, _NAMED)


def hint_at_combinations(checks: Sequence[CheckResult]) -> list[str]:
    """Return hints at a check of several columns, one for each table whose checks `unique` did not all pass."""
    hints = []
    for table in dict.fromkeys(check.table for check in checks):
        unique = [check for check in checks if check.table == table and check.check == "unique"]
        if len(unique) > 1 and any(check.verdict in ("fail", "warn") for check in unique):
            columns = ", ".join(column for check in unique for column in check.columns)
            hints.append(
                f"{table}: `unique` checks each column by itself. If only the values together are unique, write "
                f"`unique_combination_of_columns: [{columns}]`"
            )
    return hints
