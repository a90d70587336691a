"""Delete the branches that ended backfills of a pipeline left."""

from dataclasses import dataclass

from temporalio import activity

from lakehouse.catalog import BranchCatalog
from sluice.contracts.backfill import DiscardBackfillInput
from sluice.identifiers import backfill_branches


@dataclass(frozen=True)
class DiscardBackfillActivity:
    """The activity `discard_backfill`. Needs the catalog, and the installation of these runs."""

    catalog: BranchCatalog
    installation: str

    @activity.defn(name="discard_backfill")
    def discard_backfill(self, input: DiscardBackfillInput) -> list[str]:
        """Delete the branches with collected partitions; return their names. Runs that still publish to one fail."""
        left = self.catalog.list_branches(backfill_branches(self.installation, input.pipeline))
        for branch in left:
            self.catalog.delete_branch(branch.name)
        return [branch.name for branch in left]
