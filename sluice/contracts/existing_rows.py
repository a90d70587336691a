"""Inputs and results of the activities that bring existing rows onto a new branch: rebase, resume, restore."""

from pydantic import ConfigDict, Field

from sluice.base_model import Model
from sluice.contracts.references import BranchRef, RunRef
from sluice.contracts.write import WriteResult
from sluice.pipeline.write import Write


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
    """The result of `rebase_branch`: the new branch and what it holds, or why there is none."""

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


class ResumeBranchInput(Model):
    """Input of `resume_branch`: rebase the rows of a quarantined branch onto main, on the branch of a new attempt."""

    run_ref: RunRef
    resume: Resume
    write: Write
    tables: list[str]
    """The tables that the pipeline names."""
    catalog_id: str | None = None
    """The catalog that earlier attempts of this run saw, if any."""


class Restore(Model):
    """Tables to restore to earlier versions."""

    runs: list[str]
    """The ids of the runs that are rolled back, the newest first."""
    main_head: str
    """The head of main when this was planned."""
    tables: dict[str, str]
    """By table, the hash of main that holds the version to restore."""


class RestoreTablesInput(Model):
    """Input of `restore_tables`: commit earlier versions of tables to the branch of a new attempt."""

    run_ref: RunRef
    restore: Restore
    catalog_id: str | None = None
    """The catalog that earlier attempts of this run saw, if any."""


class ExistingRowsResult(Model):
    """The result of `resume_branch` and `restore_tables`: the branch of a new attempt, and the rows that it holds."""

    model_config = ConfigDict(extra="ignore")  # stored histories hold a `why_not`, which is always empty

    branch: BranchRef
    write_result: WriteResult
