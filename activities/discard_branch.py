"""Delete the branch of an attempt: what fences it."""

from dataclasses import dataclass

from temporalio import activity

from activities.errors import as_application_error
from lakehouse.catalog import BranchCatalog


@dataclass(frozen=True)
class DiscardBranchActivity:
    """The activity `discard_branch`. Needs the catalog."""

    catalog: BranchCatalog

    @activity.defn(name="discard_branch")
    def discard_branch(self, name: str) -> None:
        """Delete a branch for good, if it exists. Each later commit to it fails."""
        with as_application_error():
            self.catalog.delete_branch(name)
