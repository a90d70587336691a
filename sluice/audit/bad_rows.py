"""Row-level quarantine: when bad rows are set apart instead of keeping the whole run out."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from sluice.audit.verdicts import CheckResult
from sluice.pipeline.table import Table

SUFFIX = "__quarantine"
CHECKS, RUN, AT = "quarantined_checks", "quarantined_run", "quarantined_at"
"""The columns that a quarantine table has beside those of its table."""


def quarantine_table(table: str) -> str:
    """Return the table that the bad rows of a table go to."""
    return table + SUFFIX


def quarantinable_checks(results: Sequence[CheckResult], tables: Mapping[str, Table]) -> dict[str, list[int]]:
    """Return, by table, the checks whose bad rows can be set apart so that the rest may pass; empty if they cannot.

    All that blocks must be row checks of the rows that the run brings, in tables that say so.
    """
    found: dict[str, list[int]] = {}
    for result in results:
        if not result.blocks:
            continue
        table = tables[result.table]
        check = table.checks[result.index] if result.index >= 0 else None
        if result.verdict == "error" or check is None or table.on_bad_rows != "quarantine":
            return {}
        if not check.row_level or check.scope != "added":
            return {}
        found.setdefault(result.table, []).append(result.index)
    return found


def bad_row_limit(table: Table, added_rows: int) -> int:
    """Return how many bad rows of so many may be set apart."""
    limits = []
    if table.max_bad_rows is not None:
        limits.append(table.max_bad_rows)
    if table.max_bad_proportion is not None:
        limits.append(int(Fraction(str(table.max_bad_proportion)) * added_rows))
    return min(limits)


def spoken(bad_rows: Mapping[str, int]) -> str:
    """Say where bad rows went."""
    parts = [f"{count} bad rows of {table} went to {quarantine_table(table)}" for table, count in bad_rows.items()]
    return "; ".join(parts)
