"""Inputs and results of the activities that decide on a merge, merge, and confirm it."""

from typing import Literal

from pydantic import Field

from sluice.approval.decisions import Decision
from sluice.approval.required import ApprovalTerms
from sluice.approval.waivers import WaivableCheck, WaivedCheck
from sluice.base_model import Model
from sluice.contracts.input import PublicationCheck
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.references import BranchRef, RunRef
from sluice.pipeline.write import Write


class FindConflictsInput(Model):
    """Input of `find_conflicts`: find out whether a merge now would fail."""

    branch: BranchRef
    head: str
    watched_tables: list[str] = Field(default_factory=list)
    """The tables that checks read, as they were at the base."""


class VerifyDecisionInput(Model):
    """Input of `verify_decision`: verify that the person whose name a decision carries signed it."""

    run_id: str
    decision: Decision


class RequireApprovalInput(Model):
    """Input of `require_approval`: find out which approval a run needs, by what it changed."""

    branch: BranchRef
    head: str
    terms: ApprovalTerms
    at_least: int = 0
    """So many people are needed in any case, as to waive a failed check."""


class FindWaiversInput(Model):
    """Input of `find_waivers`: find the waivers in force for failed checks of a run, by what is published."""

    run_ref: RunRef
    branch: BranchRef
    head: str
    terms: ApprovalTerms
    checks: list[WaivableCheck]


class PublishBranchInput(Model):
    """Input of `publish_branch`: merge exactly the audited hash."""

    run_ref: RunRef
    branch: BranchRef
    head: str
    message: str
    properties: dict[str, str]
    author: str
    audit_digest: str = ""
    """The digest of the audit report."""
    terms: ApprovalTerms = Field(default_factory=ApprovalTerms)
    """What decides which approval the run needs."""
    approvals: list[Decision] = Field(default_factory=list)
    watched_tables: list[str] = Field(default_factory=list)
    """The tables that checks read, as they were at the base."""
    first_base: str = ""
    """The hash of main that the run's first attempt began at: an earlier publication of the run comes after it."""
    all_files: bool = False
    """Whether the added files are compared with every file of a table, and not with those added since `first_base`."""
    waived: list[WaivedCheck] = Field(default_factory=list)
    """The failed checks under whose waivers it is merged."""
    published: PublicationCheck | None = None
    """How to find out whether main holds the input by now; None where that does not matter."""
    tables: list[str] = Field(default_factory=list)
    """The tables that the run changes."""
    rebases: int = 0
    """How often the run was rebased, if it is published without people: the more, the sooner it is its turn."""


class Publication(Model):
    """The result of a merge."""

    merged: bool
    main_before: str = ""
    main_after: str = ""
    conflicts: list[str] = Field(default_factory=list)
    """The tables that main had changed meanwhile, if it was not merged."""
    merge_requested: bool = True
    """Whether this call or an earlier try of it may have requested the merge, which may then still happen."""
    overtaken: list[str] = Field(default_factory=list)
    """Watched tables that main changed between the last look at them and the merge."""


class ConfirmPublicationInput(Model):
    """Input of `confirm_publication`: find out whether main holds the run."""

    run_id: str
    since: str
    """The hash of main that the run's first attempt began at; empty means ever."""
    head: str = ""
    """The hash that the run was about to publish; empty if there is none yet."""
    base: str = ""
    """The hash of main that the branch of that hash began at."""
    watched_tables: list[str] = Field(default_factory=list)
    """The tables that checks read, as they were at the base."""
    catalog_id: str | None = None


class DiscardBranchInput(Model):
    """Input of `discard_branch`: delete a branch of one catalog."""

    branch: str
    catalog_id: str | None = None
    """The catalog that the branch was created in; None if that is not known."""


class PlanPublishInput(Model):
    """What `plan_publish` plans: the publish of a run that is about to be started."""

    kind: Literal["plan_publish"] = "plan_publish"
    tables: list[str]
    """Every table that the run may change, quarantine tables included."""
    allow_partial: bool = False
    """Whether several tables may be published one by one, where the catalog cannot commit them together."""
    pipeline: str = ""
    """The name of the pipeline."""
    write: Write | None = None
    """What the run writes; None where the order of loads does not matter."""
    order: LoadOrder = LoadOrder()
    """How old the rows of the run are."""


class PublishPlan(Model):
    """What the publish of a run guarantees."""

    guarantee: str
    """What holds when a server crashes in its middle: `atomic`, `checked` or `one by one`."""
