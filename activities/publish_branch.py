"""Merge exactly the audited hash into main."""

from dataclasses import dataclass

from temporalio import activity

from activities.errors import as_application_error
from activities.verify_decision import read_approvers
from lakehouse.catalog import BranchCatalog, tables_changed_since
from sluice.approval.signatures import approval_error
from sluice.contracts.publish import Publication, PublishBranchInput
from sluice.errors import Unapproved


@dataclass(frozen=True)
class PublishBranchActivity:
    """The activity `publish_branch`. Needs the catalog."""

    catalog: BranchCatalog
    approvers_file: str = ""
    """The file that lists those who may decide; empty means that nobody has to sign."""

    @activity.defn(name="publish_branch")
    def publish_branch(self, input: PublishBranchInput) -> Publication:
        """Merge once. A try whose predecessor merged, and lost its answer, finds that in the history of main."""
        with as_application_error():
            self.catalog.check_identity(input.branch.catalog_id)
            approvers = read_approvers(self.approvers_file)
            error = approval_error(input.approvals, input.run_ref.run_id, input.head, input.required, approvers)
            if error:
                raise Unapproved(error)
            if earlier := self.catalog.find_publication(input.head, input.branch.base):
                return earlier
            if changed := tables_changed_since(self.catalog, input.referenced_tables, input.branch.base):
                return Publication(merged=False, conflicts=changed)
            return self.catalog.publish(input.branch, input.head, input.author, input.message, input.properties)
