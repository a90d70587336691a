"""Determine the approval that a run needs before its merge, from the actual changes on its branch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from temporalio import activity

from activities.approval.verify_decision import read_approvers
from lakehouse.catalog import BranchCatalog, TableDiff
from lakehouse.iceberg.table_identity import table_uuid
from sluice.approval.approvers import Approvers
from sluice.approval.decisions import Decision
from sluice.approval.required import ApprovalRule, ApprovalTerms, RequiredApproval, required_approval
from sluice.approval.signatures import approval_error, verified_starter
from sluice.approval.waivers import GRACE, MAX_DAYS, WaivedCheck, waivable
from sluice.approval.waiving import granted_waivers, silent_waivers, unwaived_error
from sluice.contracts.publish import FindWaiversInput, PublishBranchInput, RequireApprovalInput
from sluice.errors import BadEnvironment, Unapproved
from sluice.publishing.certificate import approved_properties, unapproved_properties
from sluice.publishing.recorded_waivers import (
    GRANTED_FOR,
    describe_granted_for,
    granting_commits,
    waivers_of_commit,
)

_LONGEST_WAIVER = timedelta(days=MAX_DAYS + 2)
"""Maximum age of a waiver that is still in force. Its last day counts in full, and clocks may differ."""


def _now() -> datetime:
    return datetime.now(timezone.utc)


@dataclass(frozen=True)
class ApprovalPolicy:
    """The approval rules of this worker, and its approvers. Needs the catalog to find the changed tables."""

    catalog: BranchCatalog
    approvers_file: str = ""
    """The file that lists the approvers. Only an empty name means that no signature is needed."""
    rules: Sequence[ApprovalRule] = ()
    installation: str = ""
    """The installation of these runs. Waivers that another installation granted on the same main do not count."""
    io: Mapping[str, str] = field(default_factory=dict)
    """Iceberg's FileIO properties for the lake."""
    publishes_to_main: bool = True
    """True if merges go to main. The partitions of a joint backfill are approved when all are published together."""
    clock: Callable[[], datetime] = _now
    """The present time, which decides if a waiver is in force."""

    def required(
        self, branch: str, head: str, terms: ApprovalTerms, approvers: Approvers | None, at_least: int = 0
    ) -> RequiredApproval:
        """Return the approval that a merge of a branch at a hash needs, by `at_least` people or more."""
        if not self.publishes_to_main and not at_least:
            return RequiredApproval()
        return required_approval(
            terms,
            self.rules,
            self._changed_tables(branch, head),
            signed=approvers is not None,
            verified_starter=verified_starter(terms, approvers) if approvers else "",
            at_least=at_least,
        )

    def waivers_in_force(self, input: FindWaiversInput, at: datetime) -> list[WaivedCheck]:
        """Return the waivers in force for these failed checks that published runs of the pipeline granted."""
        approvers, _ = self._approvers()
        required = self.required(input.branch.name, input.head, input.terms, approvers, at_least=1)
        required = required.model_copy(update={"starter": ""})  # the granting merge excluded its own starter already
        granting = granting_commits(input.run_ref.pipeline, self.installation)
        commits = list(self.catalog.list_published(granting, at - _LONGEST_WAIVER))
        granted_for = self.granted_for(input.branch.name, input.head) if commits else ""
        return [
            each
            for commit in commits
            if commit.properties.get(GRANTED_FOR) == granted_for
            for each in waivers_of_commit(commit.properties, input.checks, required, approvers, at)
        ]

    def granted_for(self, branch: str, head: str) -> str:
        """Return the identity of the tables that a merge changes. Later runs find its waivers by this identity."""
        return describe_granted_for(
            {diff.name: table_uuid(diff.after, self.io) for diff in self._changes(branch, head) if diff.after}
        )

    def refuse_unapproved(self, input: PublishBranchInput) -> None:
        """Verify again, before a merge, its required approvals and the properties of its commit.

        Raises:
            Unapproved: the required people have not approved exactly this merge, or its commit does not say so.
        """
        given = input.approval
        decisions: Sequence[Decision] = given.decisions
        approvers, unreadable = self._approvers()
        run_id = input.run_ref.run_id
        granted_here = [each for each in given.waived if each.run_id == run_id]
        at_least = 1 if granted_here else 0
        required = self.required(input.branch.name, input.head, given.terms, approvers, at_least)
        if why := approval_error(decisions, run_id, input.head, given.audit_digest, required, approvers):
            raise Unapproved(why + unreadable)
        if why := silent_waivers(decisions, given.waived):
            raise Unapproved(why)
        if given.waived:
            self._refuse_unwaived(input, granted_here)
        true = approved_properties(input.run_ref, input.head, given.audit_digest, decisions, given.waived)
        if wrong := unapproved_properties(input.commit.properties, true):
            raise Unapproved(f"properties of the merge commit do not match the approval: {', '.join(wrong)}")

    def _refuse_unwaived(self, input: PublishBranchInput, granted_here: Sequence[WaivedCheck]) -> None:
        """Verify the waivers of a merge with verified approvals: its own, and those that earlier runs granted."""
        now = self.clock()
        run_ref, given = input.run_ref, input.approval
        earlier = [each for each in given.waived if each not in granted_here]
        look_up = FindWaiversInput(
            run_ref=run_ref, branch=input.branch, head=input.head, terms=given.terms, checks=waivable(earlier)
        )
        in_force = self.waivers_in_force(look_up, now - GRACE) if earlier else []
        granted = granted_waivers(given.decisions, waivable(granted_here), run_ref.run_id, run_ref.workflow_id)
        if why := unwaived_error(given.waived, granted, in_force, now):
            raise Unapproved(why)

    def _approvers(self) -> tuple[Approvers | None, str]:
        """Return the approvers. If their file cannot be read, return no approvers and the reason."""
        try:
            return read_approvers(self.approvers_file), ""
        except BadEnvironment as error:
            return Approvers(), f" ({error})"

    def _changed_tables(self, branch: str, head: str) -> list[str]:
        """Return the tables that the branch actually changed since its fork from main, regardless of the request."""
        if not self.rules:
            return []
        return [diff.name for diff in self._changes(branch, head)]

    def _changes(self, branch: str, head: str) -> list[TableDiff]:
        return self.catalog.diff(self.catalog.fork_point(branch), branch, head)


@dataclass(frozen=True)
class RequireApprovalActivity:
    """The activity `require_approval`. Needs the approval policy of this worker."""

    policy: ApprovalPolicy

    @property
    def catalog(self) -> BranchCatalog:
        """Catalog of the policy."""
        return self.policy.catalog

    @activity.defn(name="require_approval")
    def require_approval(self, input: RequireApprovalInput) -> RequiredApproval:
        """Return the approval that the run needs. While the approvers cannot be read, nobody can approve."""
        try:
            approvers = read_approvers(self.policy.approvers_file)
            why = "nobody can approve: the file of approvers lists nobody" if approvers == Approvers() else ""
        except BadEnvironment as error:
            approvers, why = Approvers(), f"nobody can approve: {error}"
        required = self.policy.required(input.branch.name, input.head, input.terms, approvers, input.at_least)
        if not required.required:
            return required
        return required.model_copy(update={"why": "; ".join(filter(None, [required.why, why]))})
