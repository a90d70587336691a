"""Turn the branch of a backfill into a quarantine, so that one run can publish all its partitions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

from temporalio import activity

from activities.backfills.collected_files import check_collected_files
from activities.run.source_progress import run_with_progress
from lakehouse.catalog import BranchCatalog, CommitInfo
from lakehouse.input.manifests import InputManifests
from lakehouse.publishing.table_versions import tables_changed_since
from lakehouse.quarantine.quarantined_branches import create_quarantine
from lakehouse.quarantine.released_rows import read_marked_tables
from lakehouse.source_files import OnProgress
from runtime.backfills.backfill_plan import check_same_for_all
from runtime.pipeline.pipeline_input import pipeline_of_text
from sluice.contracts.backfill import BackfillBranch, CollectBackfillInput
from sluice.contracts.quarantine import VerifiedWrite
from sluice.contracts.references import RunRef
from sluice.contracts.selected_input import ManifestRef
from sluice.errors import InputChanged, InvalidInput, UnexpectedWrite
from sluice.identifiers import quarantine_branch
from sluice.input.manifest import InputManifest, ManifestFile, ManifestHeader
from sluice.input.publications import read_input_record
from sluice.pipeline.model import Pipeline
from sluice.publishing.branch_properties import input_properties, quarantine_properties
from sluice.publishing.commit_properties import (
    ATTEMPT,
    INSTALLATION,
    PIPELINE,
    PIPELINE_DIGEST,
    ROLLED_BACK,
    RUN_ID,
)
from sluice.publishing.load_properties import PARTITION
from sluice.publishing.quarantine_tables import quarantine_table
from sluice.publishing.written_tables import WrittenTable, check_history
from sluice.sizes import format_count

_CAUSE = "collected"


@dataclass(frozen=True)
class CollectBackfillActivity:
    """The activity `collect_backfill`.

    Needs the catalog, Iceberg's FileIO properties for the lake, the store of input manifests, and the installation of
    these runs.
    """

    catalog: BranchCatalog
    io: Mapping[str, str]
    manifests: InputManifests
    installation: str

    @activity.defn(name="collect_backfill")
    async def collect_backfill(self, input: CollectBackfillInput) -> BackfillBranch:
        """Copy the branch of a backfill to a quarantine, and delete the branch; return the quarantine's name.

        If the branch changes nothing, main has all partitions already. Then the branch stays, and the name is empty.

        Raises:
            InvalidPipeline: a placeholder differs between partitions where the joint audit needs one value for all.
            InvalidInput: the branch does not exist any more.
            InputChanged: a file was replaced after its partition was written to the branch, or a table of the pipeline
                was rolled back on main meanwhile.
            UnexpectedWrite: the branch contains changes that no run of the pipeline published to it.
        """
        return await run_with_progress(partial(self._collect, input), activity.heartbeat, "comparing the files")

    def _collect(self, input: CollectBackfillInput, on_progress: OnProgress) -> BackfillBranch:
        check_same_for_all(input.pipeline, input.values)
        pipeline = pipeline_of_text(input.pipeline, input.values)
        name = quarantine_branch(pipeline.name, input.day, input.run_id)
        head = self.catalog.find_head(input.branch)
        if head is None:
            return self._read_collected(input, name)
        base = self.catalog.fork_point(input.branch)
        self._check_not_rolled_back(pipeline, base)
        if not self.catalog.diff(base, input.branch, head):
            return BackfillBranch(name="", catalog_id=input.catalog_id)
        check_collected_files(input.pipeline, self._read_partitions(input.branch, base), on_progress)
        create_quarantine(self.catalog, name, head, input.branch, self._describe(input, pipeline, base, head))
        self.catalog.delete_branch_at(input.branch, head)
        return BackfillBranch(name=name, catalog_id=input.catalog_id)

    def _read_collected(self, input: CollectBackfillInput, name: str) -> BackfillBranch:
        """Return the quarantine of an earlier try that succeeded, but whose answer was lost.

        Raises:
            InvalidInput: there is none, so somebody deleted the branch.
        """
        if self.catalog.find_head(name) is None:
            raise InvalidInput(f"the branch {input.branch} of the backfill does not exist: start the backfill again")
        return BackfillBranch(name=name, catalog_id=input.catalog_id)

    def _check_not_rolled_back(self, pipeline: Pipeline, base: str) -> None:
        """Check that main still has the partitions that the backfill skipped.

        Raises:
            InputChanged: a table of the pipeline was rolled back after the branch began.
        """
        for commit in takewhile(lambda each: each.hash != base, self.catalog.history(self.catalog.main)):
            is_rollback = ROLLED_BACK in commit.properties
            if is_rollback and (
                tables := tables_changed_since(self.catalog, pipeline.tables, commit.parent, commit.hash)
            ):
                raise InputChanged(
                    f"{tables[0]} was rolled back on main after the backfill began, so main may lack partitions that "
                    "it skipped. Nothing was published, and what was collected is deleted: start the backfill again"
                )

    def _describe(self, input: CollectBackfillInput, pipeline: Pipeline, base: str, head: str) -> dict[str, str]:
        """Return the properties of the quarantine: its content, and the runs and files that the content is from."""
        commits = list(takewhile(lambda commit: commit.hash != base, self.catalog.history(input.branch)))
        runs = _runs(input.branch, pipeline.name, commits)
        tables = self._read_tables(input.branch, base, head, runs)
        run_ref = RunRef(
            run_id=input.run_id,
            workflow_id=input.workflow_id,
            pipeline=pipeline.name,
            label=pipeline.label,
            attempt=1,
            partition=input.values.get("partition", ""),
        )
        verified = VerifiedWrite(
            head=head,
            attempt=1,
            tables={table.name: _net_rows(table) for table in tables},
            appends=pipeline.write.rebases,
            rows_quarantined=bool({*map(quarantine_table, pipeline.tables)} & {table.name for table in tables}),
            runs=runs,
        )
        manifest = self._write_manifest(run_ref, pipeline, base, commits)
        properties = quarantine_properties(
            run_ref,
            base,
            _CAUSE,
            f"{format_count(len(runs), 'run')} of a backfill, to be published together",
            input.expires,
            head=head,
            input=input_properties(manifest.digest, list(pipeline.tables), manifest),
            verified=verified,
        )
        return {**properties, INSTALLATION: self.installation, PIPELINE_DIGEST: pipeline.digest}

    def _read_partitions(self, branch: str, base: str) -> Iterator[tuple[str, list[ManifestFile]]]:
        """Yield the partitions on a branch, with the files that their runs loaded."""
        for commit in takewhile(lambda commit: commit.hash != base, self.catalog.history(branch)):
            record, partition = read_input_record(commit.properties), commit.properties.get(PARTITION, "")
            if partition and record and record.manifest:
                yield partition, self.manifests.read(record.manifest).loaded

    def _read_tables(self, branch: str, base: str, head: str, runs: Mapping[str, int]) -> list[WrittenTable]:
        """Read the tables that the branch changes, and check that these runs made every change."""
        makers = [(run_id, range(1, attempt + 1)) for run_id, attempt in runs.items()]
        tables = read_marked_tables(self.catalog.diff(base, branch, head), self.io, makers)
        for table in tables:
            if table.change is None:
                raise UnexpectedWrite(f"a run of the backfill dropped {table.name} on {branch}")
            if table.foreign_snapshots:
                raise UnexpectedWrite(f"{table.name} has a snapshot on {branch} that no run of the backfill made")
            check_history(table)
        return tables

    def _write_manifest(
        self, run_ref: RunRef, pipeline: Pipeline, base: str, commits: Sequence[CommitInfo]
    ) -> ManifestRef:
        """Write one input manifest with the files that all runs loaded or left out. The merge records them by it."""
        records = [read_input_record(commit.properties) for commit in reversed(commits)]
        manifests = [self.manifests.read(record.manifest) for record in records if record and record.manifest]
        header = ManifestHeader(
            run_id=run_ref.run_id,
            workflow_id=run_ref.workflow_id,
            pipeline=pipeline.name,
            attempt=1,
            base=base,
            tables=list(pipeline.tables),
            policy=pipeline.write.loaded_files,
            again=False,
            input_digest="",
            partitions=[input for manifest in manifests for input in manifest.inputs],
            order_matters=pipeline.write.traits.order_matters,
            replaces=pipeline.write.traits.replaces,
        )
        return self.manifests.write(
            InputManifest(header=header, files=[file for each in manifests for file in each.files])
        )


def _runs(branch: str, pipeline: str, commits: Sequence[CommitInfo]) -> dict[str, int]:
    """Return the runs that published to a branch, each with its last attempt.

    Raises:
        UnexpectedWrite: the branch has a commit that is not the merge of a run of the pipeline.
    """
    runs = {}
    for commit in commits:
        properties = commit.properties
        if properties.get(PIPELINE) != pipeline or not (run_id := properties.get(RUN_ID)) or not commit.merged:
            raise UnexpectedWrite(f"no run of the pipeline {pipeline} made the commit {commit.hash[:12]} on {branch}")
        runs[run_id] = int(properties.get(ATTEMPT, "1"))
    return runs


def _net_rows(table: WrittenTable) -> int:
    return table.change.added_rows - table.change.deleted_rows if table.change else 0
