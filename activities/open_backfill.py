"""Create the branch on which a backfill collects partitions that it publishes together."""

from dataclasses import dataclass

from temporalio import activity

from activities.errors import as_application_error
from lakehouse.catalog import BranchCatalog
from sluice.contracts.backfill import BackfillBranch, OpenBackfillInput
from sluice.errors import InvalidPipeline
from sluice.identifiers import backfill_branch


@dataclass(frozen=True)
class OpenBackfillActivity:
    """The activity `open_backfill`. Needs the catalog, and the installation of these runs."""

    catalog: BranchCatalog
    installation: str

    @activity.defn(name="open_backfill")
    def open_backfill(self, input: OpenBackfillInput) -> BackfillBranch:
        """Create the branch at the head of main, or return the one that an interrupted backfill left."""
        with as_application_error():
            if not self.catalog.capabilities.merges_into_branches:
                raise InvalidPipeline(
                    "this catalog merges into main alone, so that partitions cannot be published together: leave out "
                    "`--publish together`, and each is published by itself"
                )
            identity = self.catalog.identity()
            name = backfill_branch(self.installation, input.pipeline)
            if self.catalog.find_head(name) is None:
                self.catalog.create_branch(name, self.catalog.initialize_main())
            return BackfillBranch(name=name, catalog_id=identity)
