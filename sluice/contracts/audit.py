"""Inputs and results of the activities that audit a branch and quarantine bad rows."""

from pydantic import Field

from sluice.base_model import Model
from sluice.checks.verdicts import CheckResult
from sluice.contracts.references import RunRef
from sluice.pipeline.table import Table


class PreviousAudit(Model):
    """An earlier audit of the same rows, as the run's own history has it: a job can write to the lake and not there."""

    verdicts: list[CheckResult]
    """Its verdicts that still hold."""


class AuditInput(Model):
    """Input of `audit_branch`: answer the checks of a branch at one hash."""

    run_ref: RunRef
    branch: str
    base: str
    head: str
    catalog_id: str | None = None
    tables: dict[str, Table]
    now: str = ""
    """When the audit began, in ISO 8601; `freshness` measures from here."""
    keys: list[str] = Field(default_factory=list)
    """The columns that the run merged rows by, if it did: then files that it added hold unchanged rows, too."""
    requeued: bool = False
    """Whether the run requeues rows: the lower bounds of the size of a batch are not applied to them."""
    rows_were_quarantined: bool = False
    """Whether it is the second audit of an attempt, after its bad rows were quarantined."""
    show_values: bool = False
    """Whether messages may quote values of rows."""
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
"""How often a scan may fail. On the last try, a check that cannot be answered gets an error."""


class ScanInput(Model):
    """Input of `scan_files` and `scan_branch`: answer undecided checks from the rows."""

    audit: AuditInput
    undecided: dict[str, list[int]]
    """By table, the indexes of the checks to answer."""
    try_number: int = 1
    is_last_try: bool = False
    """Whether a check that cannot be answered gets an error now. Before, it fails the scan, which is tried again."""
    runs_apart: bool = False
    """Whether the scan gets a Spark of its own, because a server that the run's jobs shared with others crashed."""

    @property
    def check_count(self) -> int:
        """The number of checks to answer."""
        return sum(map(len, self.undecided.values()))


class QuarantineRowsInput(Model):
    """Input of `quarantine_rows`: move the rows that break these checks."""

    audit: AuditInput
    failing: dict[str, list[int]]
    """By table, the indexes of the checks."""
    runs_apart: bool = False
    """Whether the job gets a Spark of its own."""


class QuarantineRowsResult(Model):
    """The result of `quarantine_rows`: the number of bad rows, and whether they were moved."""

    bad_rows: dict[str, int]
    """By table, the number of bad rows."""
    broken_checks: dict[str, dict[str, int]] = Field(default_factory=dict)
    """By table, how many of them break each check."""
    above_cap: dict[str, int | None] = Field(default_factory=dict)
    """The tables with more bad rows than their cap, and the cap if it is known; if there are any, no row was moved."""
