"""Delete the branch of an attempt, which fences the attempt."""

from dataclasses import dataclass

from temporalio import activity

from lakehouse.catalog import BranchCatalog
from sluice.contracts.publish import DiscardBranchInput


@dataclass(frozen=True)
class DiscardBranchActivity:
    """The activity `discard_branch`. Needs the catalog."""

    catalog: BranchCatalog

    @activity.defn(name="discard_branch")
    def discard_branch(self, input: DiscardBranchInput) -> None:
        """Delete a branch for good, if it exists. Later commits to it, and its merge, fail."""
        self.catalog.delete_branch(input.branch)
