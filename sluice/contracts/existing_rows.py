"""Inputs and results of the activities that bring existing rows onto a new branch: rebase, resume, restore."""

from pydantic import Field

from sluice.base_model import Model
from sluice.contracts.input import ManifestRef, PublicationCheck
from sluice.contracts.references import BranchRef, BranchRequest, RunRef
from sluice.contracts.write import WriteResult
from sluice.pipeline.write import Write


class RebaseBranchInput(BranchRequest):
    """Input of `rebase_branch`: re-add the files of an attempt on a newer main, on the branch of a new attempt."""

    run_ref: RunRef
    branch: BranchRef
    """The branch that held the write. It is deleted: `write_result` has the versions of the tables."""
    write_result: WriteResult
    write: Write
    rows_quarantined: bool
    """Whether bad rows were moved to quarantine tables on the branch."""
    conflicts: list[str] = Field(default_factory=list)
    """The tables that main changed: those of the write, and those that its checks read."""
    first_base: str = ""
    """The hash of main that the run's first attempt began at."""
    published: PublicationCheck | None = None
    """How to find out whether main holds the input by now; None where that does not matter."""
    input_properties: dict[str, str] = Field(default_factory=dict)
    """What the first commit of the new branch says of the input of the run."""


class RebaseResult(Model):
    """The result of `rebase_branch`: the new branch and what it holds, or why there is none."""

    branch: BranchRef | None = None
    write_result: WriteResult | None = None
    why_not: str = ""
    """Why the run has to be rewritten, if it cannot be rebased."""
    compacted: list[str] = Field(default_factory=list)
    """The tables that main only compacted: their rows are the same in other files."""


class Resume(Model):
    """Rows that a quarantined branch holds, to be audited and published instead of written."""

    branch: str
    """The quarantined branch. It is deleted once its rows are published."""
    run_id: str
    """The run that was quarantined."""
    base: str
    """The hash of main that the branch began at."""
    head: str
    """The hash that holds exactly what is quarantined."""
    statements: list[str] = Field(default_factory=list)
    """SQL that repairs the rows first."""
    manifest: ManifestRef | None = None
    """The files that the rows are of."""
    published: PublicationCheck | None = None
    """How to find out whether main holds the input by now; None where it may be published again."""


class ResumeBranchInput(Model):
    """Input of `resume_branch`: rebase the rows of a quarantined branch onto main, on the branch of a new attempt."""

    run_ref: RunRef
    resume: Resume
    write: Write
    tables: list[str]
    """The tables that the pipeline names."""
    allow_partial: bool = False
    """Whether several tables may be published one by one, where the catalog cannot commit them together."""
    input_properties: dict[str, str] = Field(default_factory=dict)
    """What the first commit of the branch says of the input of the run."""
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
    allow_partial: bool = False
    """Whether several tables may be published one by one, where the catalog cannot commit them together."""
    catalog_id: str | None = None
    """The catalog that earlier attempts of this run saw, if any."""


class ExistingRowsResult(Model):
    """The result of `resume_branch` and `restore_tables`: the branch of a new attempt, and the rows that it holds."""

    branch: BranchRef
    write_result: WriteResult
