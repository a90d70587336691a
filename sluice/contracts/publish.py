"""Inputs and results of the activities that decide on a merge, merge, and confirm it."""

from pydantic import Field

from sluice.approval.decisions import Decision
from sluice.base_model import Model
from sluice.contracts.references import BranchRef, RunRef


class FindConflictsInput(Model):
    """Input of `find_conflicts`: find out whether a merge now would fail."""

    branch: BranchRef
    head: str
    referenced_tables: list[str] = Field(default_factory=list)
    """Tables of main that checks read, as they were at the base."""


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
