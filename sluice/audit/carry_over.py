"""Carry-over: find the verdicts that stay valid after a rebase added the same files to a newer main."""

from collections.abc import Mapping, Sequence

from sluice.checks.base import Check
from sluice.checks.verdicts import CheckResult


def carried_over_verdicts(
    checks: Mapping[str, Sequence[Check]], earlier: Sequence[CheckResult]
) -> dict[tuple[str, int], CheckResult]:
    """Return the earlier verdicts that stay valid, by table and index of the check."""
    by_check = {(verdict.table, verdict.index): verdict for verdict in earlier}
    return {
        (table, index): by_check[table, index]
        for table, listed in checks.items()
        for index, check in enumerate(listed)
        if (table, index) in by_check and reads_only_added_rows(check)
    }


def reads_only_added_rows(check: Check) -> bool:
    """Return True if the verdict on a check depends only on the rows that the run added."""
    return check.row_level and check.scope == "added" and not check.needs and not check.references
