"""Inputs and results of the activities that decide on a merge, merge, and confirm it."""

from typing import Literal

from pydantic import Field

from sluice.approval.decisions import Decision
from sluice.approval.required import ApprovalTerms
from sluice.approval.waivers import WaivableCheck, WaivedCheck
from sluice.base_model import WireMessage
from sluice.contracts.input import PublicationCheck
from sluice.contracts.lake_query import LakeQueryMessage
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.references import BranchMessage, CatalogIdMessage, RunRef
from sluice.pipeline.scope import LoadScope
from sluice.pipeline.write import Write


class FindConflictsInput(BranchMessage):
    """Input of `find_conflicts`: find out whether a merge would fail now."""

    head: str
    watched_tables: list[str] = Field(default_factory=list)
    """Tables that checks read, as they were at the base."""


class VerifyDecisionInput(WireMessage):
    """Input of `verify_decision`: verify that the person named in a decision signed it."""

    run_id: str
    decision: Decision


class RequireApprovalInput(BranchMessage):
    """Input of `require_approval`: determine the approval that a run needs for its changes."""

    head: str
    terms: ApprovalTerms
    at_least: int = 0
    """Minimum number of people in any case, for example to waive a failed check."""


class FindWaiversInput(BranchMessage):
    """Input of `find_waivers`: find the waivers in force for failed checks of a run, among the published ones."""

    run_ref: RunRef
    head: str
    terms: ApprovalTerms
    checks: list[WaivableCheck]


class MergeCommit(WireMessage):
    """Commit that a merge makes on main."""

    message: str
    author: str
    properties: dict[str, str]


class MergeApproval(WireMessage):
    """Evidence that a merge is approved. A worker verifies it again before the merge."""

    audit_digest: str = ""
    """Digest of the audit report."""
    terms: ApprovalTerms = Field(default_factory=ApprovalTerms)
    """Terms that decide which approval the run needs."""
    decisions: list[Decision] = Field(default_factory=list)
    waived: list[WaivedCheck] = Field(default_factory=list)
    """Failed checks whose waivers allow the merge."""


class MainRequirements(WireMessage):
    """Requirements that main must meet at the time of a merge."""

    watched_tables: list[str] = Field(default_factory=list)
    """Tables that checks read. Main must still have the versions that they had at the base."""
    published: PublicationCheck | None = None
    """Check that main does not have the input yet; None if that does not matter."""
    first_base: str = ""
    """Hash of main from which the branch of the run's first attempt was created.

    An earlier publication of the run comes after it.
    """
    all_files: bool = False
    """True to compare the added files with every file of a table, not only with those added since `first_base`."""


class PublishBranchInput(BranchMessage):
    """Input of `publish_branch`: merge exactly the audited hash."""

    run_ref: RunRef
    head: str
    """Audited hash."""
    tables: list[str] = Field(default_factory=list)
    """Tables that the run changes."""
    commit: MergeCommit
    approval: MergeApproval = Field(default_factory=MergeApproval)
    main: MainRequirements = Field(default_factory=MainRequirements)
    has_merge_slot: bool = False
    """True if the run has the merge slot of a table. A run without one waits for a run with merge priority."""


class Publication(WireMessage):
    """Result of a merge."""

    merged: bool
    main_before: str = ""
    main_after: str = ""
    conflicts: list[str] = Field(default_factory=list)
    """Tables that main changed meanwhile, if the run was not merged."""
    merge_requested: bool = True
    """True if this call or an earlier try of it may have requested the merge, which may then still happen."""
    overtaken: list[str] = Field(default_factory=list)
    """Watched tables that main changed after they were last compared, before the merge."""


class ConfirmPublicationInput(CatalogIdMessage):
    """Input of `confirm_publication`: find out whether the run was merged into main."""

    run_id: str
    since: str
    """Hash of main from which the branch of the run's first attempt was created; empty for no limit."""
    head: str = ""
    """Hash that the run was about to publish; empty if there is none yet."""
    base: str = ""
    """Hash of main from which the branch of `head` was created."""
    watched_tables: list[str] = Field(default_factory=list)
    """Tables that checks read, as they were at the base."""


class DiscardBranchInput(CatalogIdMessage):
    """Input of `discard_branch`: delete a branch of one catalog."""

    branch: str


class PlanPublishInput(LakeQueryMessage):
    """Input of `plan_publish`: plan the publish of a run that is about to be started."""

    kind: Literal["plan_publish"] = "plan_publish"
    tables: list[str]
    """All tables that the run may change, including quarantine tables."""
    allow_partial: bool = False
    """True if several tables may be published one by one when the catalog cannot commit them together."""
    pipeline: str = ""
    """Name of the pipeline."""
    write: Write | None = None
    """Write of the run; None if the order of loads does not matter."""
    order: LoadOrder = LoadOrder()
    """Age of the rows of the run."""
    partitions: list[str] = Field(default_factory=list)
    """Partitions of a backfill that is about to be started."""
    again: bool = False
    """True if the backfill loads partitions again that main contains."""
    scopes: list[LoadScope] = Field(default_factory=list)
    """Scopes of these partitions, if their input is known only as a whole and main must not contain parts of them."""


class PublishPlan(WireMessage):
    """Guarantee of the publish of a run."""

    guarantee: str
    """Guarantee if a server crashes during the publish: `atomic`, `checked` or `one by one`."""
