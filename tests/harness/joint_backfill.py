"""The joint publish of a backfill, activity by activity, on a catalog in memory."""

import json
from collections.abc import Mapping
from typing import Any

from activities.backfills.collect_backfill import CollectBackfillActivity
from activities.backfills.open_backfill import OpenBackfillActivity
from sluice.contracts.backfill import BackfillBranch, CollectBackfillInput, OpenBackfillInput
from sluice.contracts.selected_input import SelectedInput
from sluice.contracts.starting import PipelineText
from sluice.pipeline.placeholders import values_of_all
from sluice.pipeline.scope import LoadScope
from sluice.publishing.load_properties import PARTITION
from tests.harness.activity import run_activity
from tests.harness.loading_run import TABLE, Folder, publish_release, release_plan
from tests.harness.memory_catalog import MemoryCatalog


class JointBackfill:
    """A backfill that publishes partitions of a folder together."""

    def __init__(
        self, folder: Folder, catalog: MemoryCatalog, name: str, write: Mapping[str, Any], **source: str
    ) -> None:
        """Create the branch of the backfill.

        Args:
            name: a name of this backfill, which differs from those of other ones.
            write: the write of the pipeline, without its source.
            source: the source of the pipeline, without its path.
        """
        self.folder, self.name, self.write = folder, name, write
        self.source = source
        self.partitions: list[str] = []
        self._catalog = catalog
        activity = OpenBackfillActivity(catalog, "here")
        self.branch: BackfillBranch = run_activity(
            activity.open_backfill, OpenBackfillInput(pipeline="p", request=name)
        )

    async def load(self, partition: str, **options: Any) -> SelectedInput:
        """Load the files of a partition, and publish them to the branch of the backfill."""
        lake = self.folder.lake.with_catalog(self._catalog.publishing_to(self.branch.name))
        folder = Folder(lake, self.folder.path)
        self.folder.runs += 1
        folder.runs = self.folder.runs
        run = folder.run(f"{partition}/*.csv", scope=LoadScope(path=partition), **options)
        branch, selected = await run.write()
        assert run.publish(branch, selected, **{PARTITION: partition}).merged
        lake.catalog.delete_branch(branch.name)
        self.partitions.append(partition)
        return selected

    @property
    def pipeline(self) -> PipelineText:
        """The file of the pipeline."""
        source = {"path": f"{self.folder.path}/{{{{ partition }}}}/*.csv", **self.source}
        write = {**self.write, "source": source}
        stated = {"name": "p", "write": write, "tables": {TABLE: {"partition_by": ["id"]}}}
        return PipelineText(name="p.yml", text=json.dumps(stated), folder="/")

    async def collect(self) -> str:
        """Turn the branch into a quarantine of the whole; return the id of the run that keeps it."""
        input = CollectBackfillInput(
            branch=self.branch.name,
            catalog_id=self.branch.catalog_id,
            pipeline=self.pipeline,
            values=values_of_all(self.partitions),
            workflow_id=f"w-{self.name}",
            run_id=self.name,
            day="2026-01-31",
            expires="2026-12-14T00:00:00+00:00",
        )
        activity = CollectBackfillActivity(self._catalog, {}, self.folder.lake.manifests, "here")
        await run_activity(activity.collect_backfill, input)
        return self.name

    async def publish(self) -> None:
        """Publish the whole to main."""
        publish_release(self.folder.lake, release_plan(self.folder.lake, await self.collect()))
