"""Merge exactly the audited hash into main, and look whether that happened."""

from dataclasses import dataclass

from temporalio import activity

from activities.errors import as_application_error
from lakehouse.catalog import BranchCatalog, tables_changed_since
from sluice.approval.signatures import read_approvers, verification_error
from sluice.contracts.activity_inputs import (
    ConfirmPublicationInput,
    Publication,
    PublishBranchInput,
    VerifyDecisionInput,
)
from sluice.errors import Unapproved


@dataclass(frozen=True)
class PublishBranchActivity:
    """Needs the catalog."""

    catalog: BranchCatalog
    approvers_file: str = ""
    """Where those who may decide are listed; empty means that nobody has to sign."""

    @activity.defn(name="publish_branch")
    def publish_branch(self, input: PublishBranchInput) -> Publication:
        """Merge once. A try whose predecessor merged, and lost its answer, finds that in the history of main."""
        with as_application_error():
            self.catalog.check_identity(input.branch.catalog_id)
            self._check_approvals(input)
            earlier = self.catalog.find_publication(input.head, input.branch.base)
            if earlier:
                return earlier
            if changed := tables_changed_since(self.catalog, input.referenced_tables, input.branch.base):
                return Publication(merged=False, conflicts=changed)
            return self.catalog.publish(input.branch, input.head, input.author, input.message, input.properties)

    @activity.defn(name="verify_decision")
    def verify_decision(self, input: VerifyDecisionInput) -> str:
        """Return why a decision is not its author's, or nothing where nobody has to sign."""
        with as_application_error():
            approvers = read_approvers(self.approvers_file)
            ruled = input.ruled
            return verification_error(ruled.statement(input.run_id), ruled.signature, approvers) if approvers else ""

    def _check_approvals(self, input: PublishBranchInput) -> None:
        """Make sure, where people have keys, that as many as had to signed for exactly this hash.

        The workflow checked each decision when it came; but who may start workflows may make any order.
        """
        approvers = read_approvers(self.approvers_file)
        if not approvers or not input.required:
            return
        for ruled in input.approvals:
            why = verification_error(ruled.statement(input.run_ref.run_id), ruled.signature, approvers)
            if ruled.audited_hash != input.head or not ruled.approve:
                why = "it is for something else"
            if why:
                raise Unapproved(f"the approval by {ruled.by} does not count: {why}")
        if len({ruled.by for ruled in input.approvals}) < input.required:
            raise Unapproved(f"{input.required} approvals are asked for")

    @activity.defn(name="confirm_publication")
    def confirm_publication(self, input: ConfirmPublicationInput) -> Publication:
        """Say whether main holds the hash, whatever was intended and whoever was told what."""
        with as_application_error():
            found = self.catalog.find_publication(input.head, input.base)
            return found or Publication(merged=False)
