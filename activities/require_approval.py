"""Find out which approval a run needs before its merge, by what its branch really changed."""

from collections.abc import Sequence
from dataclasses import dataclass

from temporalio import activity

from activities.catalog_identity import check_catalog
from activities.errors import as_application_error
from activities.verify_decision import read_approvers
from lakehouse.catalog import BranchCatalog
from sluice.approval.approvers import Approvers
from sluice.approval.decisions import Decision
from sluice.approval.required import ApprovalRule, ApprovalTerms, RequiredApproval, required_approval
from sluice.approval.signatures import approval_error, verified_starter
from sluice.contracts.publish import PublishBranchInput, RequireApprovalInput
from sluice.errors import BadEnvironment, Unapproved


@dataclass(frozen=True)
class ApprovalPolicy:
    """Who may approve, and for which tables this worker demands it. Needs the catalog, which says what changed."""

    catalog: BranchCatalog
    approvers_file: str = ""
    """The file that lists those who may decide; only an empty name means that no signature is needed."""
    rules: Sequence[ApprovalRule] = ()

    def required(self, branch: str, head: str, terms: ApprovalTerms, approvers: Approvers | None) -> RequiredApproval:
        """Return the approval that a merge of a branch at a hash needs."""
        return required_approval(
            terms,
            self.rules,
            self._changed_tables(branch, head),
            signed=approvers is not None,
            verified_starter=verified_starter(terms, approvers) if approvers else "",
        )

    def refuse_unapproved(self, input: PublishBranchInput) -> None:
        """Verify once more, before a merge, that those who must have approved exactly it.

        Raises:
            Unapproved: they have not.
        """
        decisions: Sequence[Decision] = input.approvals
        try:
            approvers = read_approvers(self.approvers_file)
            unreadable = ""
        except BadEnvironment as error:
            approvers, unreadable = Approvers(), f" ({error})"
        required = self.required(input.branch.name, input.head, input.terms, approvers)
        run_id = input.run_ref.run_id
        if why := approval_error(decisions, run_id, input.head, input.audit_digest, required, approvers):
            raise Unapproved(why + unreadable)

    def _changed_tables(self, branch: str, head: str) -> list[str]:
        """Return what the branch changes since it left main: not what a request says that it changes."""
        if not self.rules:
            return []
        return [diff.name for diff in self.catalog.diff(self.catalog.fork_point(branch), branch, head)]


@dataclass(frozen=True)
class RequireApprovalActivity:
    """The activity `require_approval`. Needs the approval policy of this worker."""

    policy: ApprovalPolicy

    @activity.defn(name="require_approval")
    def require_approval(self, input: RequireApprovalInput) -> RequiredApproval:
        """Return the approval that the run needs. Where the approvers cannot be read, nobody can approve for now."""
        with as_application_error():
            check_catalog(self.policy.catalog, input.branch.catalog_id)
            try:
                approvers = read_approvers(self.policy.approvers_file)
                why = "nobody can approve: the file of approvers lists nobody" if approvers == Approvers() else ""
            except BadEnvironment as error:
                approvers, why = Approvers(), f"nobody can approve: {error}"
            required = self.policy.required(input.branch.name, input.head, input.terms, approvers)
            if not required.required:
                return required
            return required.model_copy(update={"why": "; ".join(filter(None, [required.why, why]))})
