"""Inputs and results of the activities that audit a branch and quarantine bad rows."""

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.checks.verdicts import CheckResult
from sluice.contracts.references import CatalogIdMessage, CatalogMessage, RunRef
from sluice.pipeline.table import Table


class PreviousAudit(WireMessage):
    """An earlier audit of the same rows, from the run's history.

    The lake is not a source for it: a job can write to the lake, but not to the history.
    """

    verdicts: list[CheckResult]
    """Its verdicts that are still valid."""


class AuditInput(CatalogIdMessage):
    """Input of `audit_branch`: answer the checks of a branch at one hash."""

    run_ref: RunRef
    branch: str
    base: str
    head: str
    tables: dict[str, Table]
    now: str = ""
    """Start of the audit, in ISO 8601; `freshness` measures from here."""
    keys: list[str] = Field(default_factory=list)
    """Columns by which the run merged rows, if it did. The files that it added then also contain unchanged rows."""
    requeued: bool = False
    """True if the run requeues rows. Lower bounds of the size of a batch do not apply to them."""
    rows_were_quarantined: bool = False
    """True for the second audit of an attempt, after its bad rows were quarantined."""
    show_values: bool = False
    """True if messages may quote values of rows."""
    previous_audit: PreviousAudit | None = None
    """Audit of these rows before they were rebased."""

    @property
    def check_count(self) -> int:
        """Number of checks of all tables."""
        return sum(len(table.checks) for table in self.tables.values())


class AuditResult(WireMessage):
    """Result of an audit step: the verdicts so far, and the checks that need a scan."""

    decided: list[CheckResult]
    files: dict[str, list[int]] = Field(default_factory=dict)
    """Indexes of the checks that an engine in the worker's process (DuckDB) may answer, by table."""
    undecided: dict[str, list[int]] = Field(default_factory=dict)
    """Indexes of the checks that only Spark may answer, by table."""


SCAN_ATTEMPTS = 6
"""Maximum number of failed tries of a scan. On the last try, a check that cannot be answered gets an error."""


class AuditMessage(CatalogMessage):
    """Input about an audit, which names its catalog."""

    audit: AuditInput

    @property
    def expected_catalog(self) -> str | None:
        """Identity of the catalog of the audited branch."""
        return self.audit.catalog_id


class ScanInput(AuditMessage):
    """Input of `scan_files` and `scan_branch`: answer undecided checks from the rows."""

    undecided: dict[str, list[int]]
    """Indexes of the checks to answer, by table."""
    try_number: int = 1
    is_last_try: bool = False
    """True if a check that cannot be answered gets an error. On earlier tries it fails the scan, which is retried."""
    runs_apart: bool = False
    """True if the scan gets a Spark of its own, because a server that the run's jobs shared with others crashed."""

    @property
    def check_count(self) -> int:
        """Number of checks to answer."""
        return sum(map(len, self.undecided.values()))


class QuarantineRowsInput(AuditMessage):
    """Input of `quarantine_rows`: move the rows that break these checks."""

    failing: dict[str, list[int]]
    """Indexes of the checks, by table."""
    moved_before: dict[str, int] = Field(default_factory=dict)
    """Number of rows that audits before a rebase moved, by table. The cap counts them."""
    runs_apart: bool = False
    """True if the job gets a Spark of its own."""


class QuarantineRowsResult(WireMessage):
    """Result of `quarantine_rows`: the number of bad rows, and the tables that have too many to move them.

    No number includes rows that were moved before.
    """

    bad_rows: dict[str, int]
    """Number of bad rows, by table."""
    broken_checks: dict[str, dict[str, int]] = Field(default_factory=dict)
    """Number of bad rows that break each check, by table."""
    above_cap: dict[str, int | None] = Field(default_factory=dict)
    """Tables whose bad rows exceed what is left of their cap, with that number if it is known.

    If there is any, no row was moved.
    """
