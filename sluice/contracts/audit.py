"""Inputs and results of the activities that audit a branch and quarantine bad rows."""

from pydantic import Field

from sluice.audit.verdicts import CheckResult
from sluice.base_model import Model
from sluice.contracts.references import RunRef
from sluice.pipeline.table import Table


class PreviousAudit(Model):
    """An earlier audit of the same rows, whose verdicts on them still hold."""

    attempt: int
    head: str


class AuditInput(Model):
    """Input of `audit_branch`: answer the checks of a branch at one hash."""

    run_ref: RunRef
    branch: str
    base: str
    head: str
    tables: dict[str, Table]
    now: str = ""
    """When the audit began, in ISO 8601; `freshness` measures from here."""
    previous_audit: PreviousAudit | None = None
    """The audit of these rows before they were rebased."""

    @property
    def check_count(self) -> int:
        """The number of checks of all tables."""
        return sum(len(table.checks) for table in self.tables.values())


class AuditResult(Model):
    """The result of an audit step: the verdicts so far, and the checks that need a scan."""

    decided: list[CheckResult]
    files: dict[str, list[int]] = Field(default_factory=dict)
    """By table, the indexes of the checks that an engine in the worker's process may answer: DuckDB."""
    undecided: dict[str, list[int]] = Field(default_factory=dict)
    """By table, the indexes of the checks that only Spark may answer."""


SCAN_ATTEMPTS = 6
"""How often a scan is tried. On the last try, a check that cannot be answered gets an error."""


class ScanInput(Model):
    """Input of `scan_files` and `scan_branch`: answer undecided checks from the rows."""

    audit: AuditInput
    undecided: dict[str, list[int]]
    """By table, the indexes of the checks to answer."""

    @property
    def check_count(self) -> int:
        """The number of checks to answer."""
        return sum(map(len, self.undecided.values()))


class QuarantineRowsInput(Model):
    """Input of `quarantine_rows`: move the rows that break these checks."""

    audit: AuditInput
    failing: dict[str, list[int]]
    """By table, the indexes of the checks."""


class QuarantineRowsResult(Model):
    """The result of `quarantine_rows`: the number of bad rows, and whether they were moved."""

    bad_rows: dict[str, int]
    """By table, the number of bad rows."""
    above_cap: list[str] = Field(default_factory=list)
    """The tables with more bad rows than their cap; if there are any, no row was moved."""
