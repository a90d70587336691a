"""Inputs and results of the activities."""

from pydantic import Field

from sluice.approval.decisions import Decision
from sluice.audit.verdicts import CheckResult
from sluice.base_model import Model
from sluice.identifiers import attempt_branch
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write


class RunRef(Model):
    """The run and the attempt that an activity works for."""

    run_id: str
    workflow_id: str
    pipeline: str
    label: str
    attempt: int

    @property
    def branch(self) -> str:
        """The branch of this attempt: no other attempt of any run writes on it."""
        return attempt_branch(self.label, self.run_id, self.attempt)


class OpenBranchInput(Model):
    """Input of `open_branch`: create the branch of one attempt."""

    run_ref: RunRef
    tables: dict[str, Table]
    schema_is_fixed: bool
    """Whether the write cannot add columns, so that checks of existing tables can be held to theirs."""
    input_digest: str
    again: bool
    attempts: int = 1  # how often the write may be tried
    needs_approval: bool = False  # whether people have to approve the run
    catalog_id: str | None = None  # the catalog that earlier attempts of this run saw, if any


class BranchRef(Model):
    """A branch created for one attempt, at a recorded hash of main."""

    name: str
    base: str
    catalog_id: str  # the catalog's identity
    sorted_tables: list[str] = Field(default_factory=list)
    """The tables of which Spark sorts what is written to them, over all tasks."""
    commit_timeout: float = 5.0
    """How long, in seconds, the catalog works on a commit at most: after that, a publish in flight is decided."""


class WriteTableInput(Model):
    """Input of `write_table`: run one Spark job on one branch."""

    run_ref: RunRef
    branch: str
    write: Write
    tables: dict[str, Table]
    input_digest: str
    sorted_tables: list[str] = Field(default_factory=list)
    """The tables of which Spark sorts what is written to them, over all tasks."""
    folder: str = ""
    """Where the run was started: a program of the user's runs there, if the worker has that folder."""


class JobReport(Model):
    """What the write job reports. It is compared with the branch, and never trusted alone."""

    rows_read: int | None = None
    rows_written: int | None = None
    log: str = ""
    """Where the whole log of the attempt lies, on the worker's machine."""


class VerifyWriteInput(Model):
    """Input of `verify_write`: read back from the branch what an attempt did to it."""

    run_ref: RunRef
    branch: BranchRef
    write: Write
    tables: list[str]
    job: JobReport
    since: str = ""
    """The hash of the branch after which all snapshots must be of this attempt; empty means its base."""
    quarantined_rows: dict[str, int] = Field(default_factory=dict)
    """By quarantine table, the number of rows that the attempt must have added, where bad rows were quarantined."""


class TableChange(Model):
    """What a run did to one table, from its snapshots."""

    operation: str
    """Iceberg's name of it: append, overwrite, delete, replace; joined by '+' where there are several."""
    added_rows: int = 0
    deleted_rows: int = 0
    added_files: int = 0
    added_bytes: int = 0
    distribution: str = ""
    """How Spark spreads rows that are written to the table: none, hash (by partition) or range (sorted)."""
    total_rows: int | None = None
    """The rows of the table after the run, or None where row-level deletes hide it."""
    created: bool = False


class WriteResult(Model):
    """A verified write: complete on the branch, and by this attempt alone."""

    head: str
    """The hash of the branch that holds exactly the write."""
    tables: dict[str, TableChange]
    conflicts: list[str] = Field(default_factory=list)
    """The tables that main changed meanwhile too, so that a merge now would fail."""


class RebaseBranchInput(Model):
    """Input of `rebase_branch`: re-add the files of an attempt on a newer main, on the branch of a new attempt."""

    run_ref: RunRef
    branch: BranchRef
    """The branch that holds the write."""
    write_result: WriteResult
    write: Write
    rows_quarantined: bool
    """Whether bad rows were moved to quarantine tables on the branch."""


class RebaseResult(Model):
    """The result of a rebase, a resume or a restore: the new branch and what it holds."""

    branch: BranchRef | None = None
    write_result: WriteResult | None = None
    why_not: str = ""
    """Why the run has to be rewritten, if it cannot be rebased."""


class Resume(Model):
    """Rows that a quarantined branch holds, to be audited and published instead of written."""

    branch: str
    base: str
    """The hash of main that the branch began at."""
    head: str
    statements: list[str] = Field(default_factory=list)
    """SQL that repairs the rows first."""
    obsolete_branches: list[str] = Field(default_factory=list)
    """The branches to delete once this is published."""


class Restore(Model):
    """Tables to restore to earlier versions."""

    runs: list[str]
    """The ids of the runs that are rolled back, the newest first."""
    main_head: str
    """The head of main when this was planned."""
    tables: dict[str, str]
    """By table, the hash of main that holds the version to restore."""


class ResumeInput(Model):
    """Input of `resume_branch` and `restore_tables`: create an attempt's branch that holds rows which exist already."""

    run_ref: RunRef
    resume: Resume | None = None
    restore: Restore | None = None
    write: Write
    tables: list[str]
    catalog_id: str | None = None


class FindConflictsInput(Model):
    """Input of `find_conflicts`: find out whether a merge now would fail."""

    branch: BranchRef
    head: str
    referenced_tables: list[str] = Field(default_factory=list)
    """Tables of main that checks read, as they were at the base."""


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


class VerifyDecisionInput(Model):
    """Input of `verify_decision`: verify that the person whose name a decision carries signed it."""

    run_id: str
    decision: Decision


class PublishBranchInput(Model):
    """Input of `publish_branch`: merge exactly the audited hash."""

    run_ref: RunRef
    branch: BranchRef
    head: str
    message: str
    properties: dict[str, str]
    author: str
    required: int = 0
    """How many people had to approve."""
    approvals: list[Decision] = Field(default_factory=list)
    referenced_tables: list[str] = Field(default_factory=list)
    """Tables of main that checks read, as they were at the base."""


class Publication(Model):
    """The result of a merge."""

    merged: bool
    main_before: str = ""
    main_after: str = ""
    conflicts: list[str] = Field(default_factory=list)
    """The tables that main had changed meanwhile, if it was not merged."""


class ConfirmPublicationInput(Model):
    """Input of `confirm_publication`: find out whether main holds the hash."""

    base: str
    head: str


class QuarantineBranchInput(Model):
    """Input of `quarantine_branch`: keep what a branch holds, under a name with pipeline, date and run."""

    branch: BranchRef
    head: str = ""
    """The hash to keep; empty means the head of the branch, if it changed any table."""
    name: str
    properties: dict[str, str] = Field(default_factory=dict)
    """The properties of the commit that explains why the branch is kept, and until when."""
