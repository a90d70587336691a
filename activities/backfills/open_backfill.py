"""Create the branch that collects the partitions of a backfill until they are published together."""

from dataclasses import dataclass

from temporalio import activity

from lakehouse.catalog import BranchCatalog, BranchInfo
from sluice.contracts.backfill import BackfillBranch, OpenBackfillInput
from sluice.errors import InvalidPipeline
from sluice.identifiers import backfill_branch, backfill_branches


@dataclass(frozen=True)
class OpenBackfillActivity:
    """The activity `open_backfill`. Needs the catalog, and the installation of these runs."""

    catalog: BranchCatalog
    installation: str

    @activity.defn(name="open_backfill")
    def open_backfill(self, input: OpenBackfillInput) -> BackfillBranch:
        """Create the branch at the head of main, or return the branch that the same backfill left when interrupted.

        Raises:
            InvalidPipeline: the catalog cannot merge into other branches than main, or another backfill left partitions
                on its branch.
        """
        if not self.catalog.capabilities.merges_into_branches:
            raise InvalidPipeline(
                "this catalog merges only into main, so it cannot publish partitions together. Without "
                "`--publish together`, each run publishes its own partition"
            )
        identity = self.catalog.identity()
        name = backfill_branch(self.installation, input.pipeline, input.request)
        for left in self.catalog.list_branches(backfill_branches(self.installation, input.pipeline)):
            self._take_up_or_delete(left, name, input.pipeline)
        if self.catalog.find_head(name) is None:
            self.catalog.create_branch(name, self.catalog.initialize_main())
        return BackfillBranch(name=name, catalog_id=identity)

    def _take_up_or_delete(self, left: BranchInfo, name: str, pipeline: str) -> None:
        """Delete a branch that an earlier backfill left, if it contains no partitions.

        Raises:
            InvalidPipeline: it contains partitions, and is not the branch of this name.
        """
        if not self.catalog.diff(self.catalog.fork_point(left.name), left.name, left.head):
            self.catalog.delete_branch_at(left.name, left.head)
        elif left.name != name:
            raise InvalidPipeline(
                f"an earlier backfill of {pipeline} left partitions on the branch {left.name}. To continue that "
                "backfill, start it with the same file and partitions, without --again. To delete its branch, run "
                f"`backfill cancel {pipeline}`"
            )
