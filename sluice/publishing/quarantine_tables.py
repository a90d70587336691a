"""Names of quarantine tables, and of the columns that they have in addition to those of their tables."""

SUFFIX = "__quarantine"
CHECKS, RUN, AT = "quarantined_checks", "quarantined_run", "quarantined_at"
COMMENT = "Rows that broke a check"
"""Comment of each quarantine table."""
ADDED_COLUMNS = (CHECKS, RUN, AT)
"""Columns of a quarantine table in addition to those of its table."""


def quarantine_table(table: str) -> str:
    """Return the name of the quarantine table of a table."""
    return table + SUFFIX


def is_quarantine_table(table: str) -> bool:
    """Return True if a table contains the quarantined rows of another."""
    return table.endswith(SUFFIX)
