"""Inputs and results of the activities that bring existing rows onto a new branch: rebase, resume, restore."""

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.contracts.input import PublicationCheck
from sluice.contracts.references import BranchMessage, BranchRef, BranchRequest, CatalogIdMessage, RunRef
from sluice.contracts.selected_input import ManifestRef
from sluice.contracts.write import WriteResult
from sluice.pipeline.write import Write


class RebaseBranchInput(BranchRequest, BranchMessage):
    """Input of `rebase_branch`: re-add the files of an attempt to a newer main, on the branch of a new attempt."""

    run_ref: RunRef
    branch: BranchRef
    """Branch that contained the write. It is already deleted; `write_result` has the versions of the tables."""
    write_result: WriteResult
    write: Write
    rows_quarantined: bool
    """True if bad rows were moved to quarantine tables on the branch."""
    conflicts: list[str] = Field(default_factory=list)
    """Tables that main changed, among those of the write and those that its checks read."""
    first_base: str = ""
    """Hash of main from which the branch of the run's first attempt was created."""
    published: PublicationCheck | None = None
    """Check that main does not have the input yet; None if that does not matter."""
    input_properties: dict[str, str] = Field(default_factory=dict)
    """Properties that describe the run's input, for the first commit of the new branch."""


class RebaseResult(WireMessage):
    """Result of `rebase_branch`: the new branch and its content, or the reason why there is none."""

    branch: BranchRef | None = None
    write_result: WriteResult | None = None
    why_not: str = ""
    """Reason why the run must be rewritten, if it cannot be rebased."""
    compacted: list[str] = Field(default_factory=list)
    """Tables that main only compacted: the same rows in other files."""


class Resume(WireMessage):
    """Rows of a quarantined branch that a run audits and publishes, instead of writing rows."""

    branch: str
    """Quarantined branch. It is deleted once its rows are published."""
    run_id: str
    """Id of the quarantined run."""
    base: str
    """Hash of main from which the branch was created."""
    head: str
    """Hash that contains exactly the quarantined data."""
    statements: list[str] = Field(default_factory=list)
    """SQL statements that repair the rows first."""
    manifest: ManifestRef | None = None
    """Manifest of the files that the rows come from."""
    published: PublicationCheck | None = None
    """Check that main does not have the input yet; None if it may be published again."""
    requeued_runs: list[str] = Field(default_factory=list)
    """Runs that quarantined the rows first, if the quarantined run was a requeue."""


class ResumeBranchInput(CatalogIdMessage):
    """Input of `resume_branch`: rebase the rows of a quarantined branch onto main, on the branch of a new attempt."""

    run_ref: RunRef
    resume: Resume
    write: Write
    tables: list[str]
    """Tables that the pipeline names."""
    allow_partial: bool = False
    """True if several tables may be published one by one when the catalog cannot commit them together."""
    input_properties: dict[str, str] = Field(default_factory=dict)
    """Properties that describe the run's input, for the first commit of the branch."""


class Restore(WireMessage):
    """Tables to restore to earlier versions."""

    runs: list[str]
    """Ids of the runs to roll back, newest first."""
    main_head: str
    """Head of main when the roll-back was planned."""
    tables: dict[str, str]
    """Hash of main that contains the version to restore, by table."""


class RestoreTablesInput(CatalogIdMessage):
    """Input of `restore_tables`: commit earlier versions of tables to the branch of a new attempt."""

    run_ref: RunRef
    restore: Restore
    allow_partial: bool = False
    """True if several tables may be published one by one when the catalog cannot commit them together."""


class ExistingRowsResult(WireMessage):
    """Result of `resume_branch` and `restore_tables`: the branch of a new attempt, and its rows."""

    branch: BranchRef
    write_result: WriteResult
