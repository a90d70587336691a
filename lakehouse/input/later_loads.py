"""Find loads on main that are younger than the rows of a run."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from lakehouse.catalog import BranchCatalog, CommitInfo
from lakehouse.iceberg.table_identity import commits_of_other_tables
from lakehouse.iceberg.table_state import TableState, is_compaction, snapshot_property
from lakehouse.input.corrected_files import check_requeued_files
from lakehouse.input.loaded_files import LoadedFiles
from lakehouse.publishing.published_commits import read_published_commits
from lakehouse.publishing.traced_runs import trace_runs
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.publish import PlanPublishInput
from sluice.errors import InvalidPipeline
from sluice.input.publications import are_others, read_input_record
from sluice.pipeline.loading_order import is_within, latest_of, partition_after_later, rows_before_later
from sluice.pipeline.write import Write
from sluice.publishing.commit_properties import PIPELINE, RUN_ID, WORKFLOW_ID
from sluice.publishing.load_properties import PARTITION, requeued_runs
from sluice.publishing.older_rows import may_be_older
from sluice.publishing.rollback import runs_taken_back

_EVER = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class LaterLoads:
    """Search for loads on main that are younger than the rows of a run."""

    catalog: BranchCatalog
    io: Mapping[str, str]
    loaded_files: LoadedFiles

    def check_plan(self, plan: PlanPublishInput, write: Write) -> None:
        """Verify that the runs to start would not replace younger rows by older ones.

        A run skips a partition that main contains, if it selects its files. So that partition may be older than others.

        Raises:
            InvalidPipeline: a run would replace younger rows.
        """
        order, partitions = plan.order, plan.partitions
        if order.partition and write.selects_files and may_be_older(order, write, plan.tables):
            partitions, order = [order.partition], order.model_copy(update={"partition": ""})
        self.check_youngest(plan.pipeline, write, plan.tables, order)
        self._check_partitions(plan.pipeline, write, plan.tables, partitions, again=plan.again)

    def check_youngest(self, pipeline: str, write: Write, tables: Sequence[str], order: LoadOrder) -> None:
        """Verify that a run would not replace younger rows by older ones, as far as its loads have an order.

        Requeued rows that are appended replace none, but later content of their files may contain them.

        Args:
            tables: the tables of the pipeline. Rows are requeued into the first one.

        Raises:
            InvalidPipeline: the run would replace younger rows.
            InvalidInput, ManifestUnreadable: see `check_requeued_files`.
        """
        if not may_be_older(order, write, tables):
            return
        if order.runs and (later := find_later_runs(self.catalog, self.io, tables[0], order.runs)):
            raise InvalidPipeline(rows_before_later(tables[0], later))
        if order.files_of_runs:
            check_requeued_files(self.catalog, self.loaded_files, tables, order.files_of_runs)
        if order.partition:
            loaded = find_loaded_partitions(self.catalog, self.io, pipeline, tables, after=order.partition)
            _refuse_older(write, order.partition, loaded)

    def _check_partitions(
        self, pipeline: str, write: Write, tables: Sequence[str], partitions: Sequence[str], *, again: bool
    ) -> None:
        """Verify that no partition that is about to be loaded is older than one on main.

        Args:
            tables: the tables of the pipeline. A load counts while one of them is the table that it wrote to.
            again: True if partitions that main contains are loaded again. Otherwise they are skipped.

        Raises:
            InvalidPipeline: a partition is older than one on main.
        """
        if not partitions:
            return
        loaded = find_loaded_partitions(self.catalog, self.io, pipeline, tables)
        for partition in partitions:
            if again or not is_within(partition, loaded):
                _refuse_older(write, partition, loaded)


def _refuse_older(write: Write, partition: str, loaded: Collection[str]) -> None:
    if later := latest_of(loaded, partition):
        raise InvalidPipeline(partition_after_later(write, partition, f"{later}, which main contains"))


def find_loaded_partitions(
    catalog: BranchCatalog, io: Mapping[str, str], pipeline: str, tables: Sequence[str], after: str = ""
) -> set[str]:
    """Return the partitions and scheduled times of a pipeline on main.

    Those of runs that were rolled back do not count, nor those before all tables were dropped, nor those that loaded
    files into other tables, because the pipeline was edited since.

    Args:
        after: a partition; only later ones are returned.
    """
    commits = [each for each in catalog.list_published({PIPELINE: pipeline}, _EVER) if each.properties.get(PARTITION)]
    into = [each for each in commits if not are_others(_tables_of(each), tables)]
    wanted = [each for each in into if not after or latest_of([each.properties[PARTITION]], after)]
    if not wanted:
        return set()
    taken = runs_taken_back(read_published_commits(catalog))
    in_effect = [each for each in wanted if each.properties.get(RUN_ID, "") not in taken]
    head = catalog.head(catalog.main)
    runs = {each.hash: each.properties.get(RUN_ID, "") for each in reversed(in_effect)}
    lost = [commits_of_other_tables(catalog, io, table, runs, head) for table in tables]
    dropped = set.intersection(*lost) if lost else set[str]()
    return {each.properties[PARTITION] for each in in_effect if each.hash not in dropped}


def _tables_of(commit: CommitInfo) -> Sequence[str]:
    """Return the tables into which the run of a commit loaded files; none if they are not recorded."""
    record = read_input_record(commit.properties)
    return record.tables if record else ()


def find_later_runs(catalog: BranchCatalog, io: Mapping[str, str], table: str, runs: Collection[str]) -> list[str]:
    """Return the workflow ids of runs that changed rows of a table after the first of some runs, newest first.

    Three kinds of runs do not count: compactions, which change no row; requeues of rows of these runs; and runs that
    were rolled back.

    Args:
        runs: run ids, at least one. If main does not know one of them, every change of the table is younger. Rows that
            a requeue quarantined again are as old as those of the run whose rows it requeued.
    """
    head = catalog.head(catalog.main)
    now = catalog.table_version(catalog.main, table, head)
    if now is None:
        return []
    traced = trace_runs(catalog, runs)
    before = None if traced.unknown else catalog.table_version(catalog.main, table, traced.commits[-1].hash)
    commits = {commit.properties.get(RUN_ID, ""): commit.properties for commit in traced.commits}
    changed = [each for each in TableState.load(now, before, io).snapshots if not is_compaction([each])]
    later = dict.fromkeys(snapshot_property(each, RUN_ID) or "another program" for each in changed)
    return [
        commits.get(run, {}).get(WORKFLOW_ID, run)
        for run in later
        if not _is_requeue(commits.get(run, {}), traced.runs)
    ]


def _is_requeue(properties: Mapping[str, str], runs: set[str]) -> bool:
    """Return True if a commit requeued rows of these runs alone."""
    requeued = requeued_runs(properties)
    return bool(requeued) and requeued <= runs
