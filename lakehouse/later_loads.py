"""Find loads on main that are younger than the rows of a run."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from lakehouse.catalog import BranchCatalog, CommitInfo
from lakehouse.iceberg.table_state import TableState
from lakehouse.published_commits import read_published_commits
from sluice.contracts.load_order import LoadOrder
from sluice.errors import InvalidPipeline
from sluice.loading.order import latest_of, partition_after_later, rows_before_later
from sluice.loading.rules import rule_of
from sluice.pipeline.write import Write
from sluice.publishing.certificate import PIPELINE, ROLLED_BACK, RUN_ID, WORKFLOW_ID
from sluice.publishing.load_properties import PARTITION, REQUEUED_RUNS
from sluice.publishing.rollback import runs_taken_back

_EVER = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class LaterLoads:
    """Finds loads on main that are younger than the rows of a run."""

    catalog: BranchCatalog
    io: Mapping[str, str]

    def check_youngest(self, pipeline: str, write: Write, tables: Sequence[str], order: LoadOrder) -> None:
        """Make sure that a run would put no older rows over younger ones, as far as its loads have an order.

        Args:
            tables: those of the pipeline; the first one is the table that rows are requeued into.

        Raises:
            InvalidPipeline: it would.
        """
        if order.over_younger:
            return
        if order.runs and (later := find_later_runs(self.catalog, self.io, tables[0], order.runs)):
            raise InvalidPipeline(rows_before_later(tables[0], later))
        if not order.partition or rule_of("by hand", write, tables).guard != "later partition":
            return
        if later_one := find_later_partition(self.catalog, pipeline, order.partition):
            raise InvalidPipeline(partition_after_later(write, order.partition, f"{later_one}, which main holds"))


def find_later_partition(catalog: BranchCatalog, pipeline: str, partition: str) -> str:
    """Return the latest partition of a pipeline on main that comes after another one.

    It is empty if none does. A run that was rolled back does not count.
    """
    later: dict[str, str] = {}
    for commit in catalog.list_published({PIPELINE: pipeline}, _EVER):
        if loaded := latest_of([commit.properties.get(PARTITION, "")], partition):
            later[commit.properties.get(RUN_ID, "")] = loaded
    taken = runs_taken_back(read_published_commits(catalog)) if later else {}
    return latest_of((loaded for run, loaded in later.items() if run not in taken), partition)


def find_later_runs(catalog: BranchCatalog, io: Mapping[str, str], table: str, runs: Collection[str]) -> list[str]:
    """Return the workflow ids of runs that changed rows of a table after the first of some runs, the newest first.

    A compaction changes no row. A requeue of rows of these runs, and a run that was rolled back, do not count.

    Args:
        runs: by their ids; where main does not know one, all of main's history is younger.
    """
    missing = {*runs}
    after: list[CommitInfo] = []
    for commit in catalog.history(catalog.main):
        missing.discard(commit.properties.get(RUN_ID, ""))
        if not missing:
            break
        after.append(commit)
    taken = _taken_back(after)
    return [
        commit.properties.get(WORKFLOW_ID, commit.hash)
        for commit in after
        if _is_later(commit, runs, taken) and _changed_rows(catalog, io, commit, table)
    ]


def _taken_back(commits: list[CommitInfo]) -> set[str]:
    """Return the runs that roll-backs among these commits took back; the newest commit comes first."""
    taken: set[str] = set()
    for commit in commits:
        if commit.properties.get(RUN_ID, "") not in taken:
            taken |= {run for run in commit.properties.get(ROLLED_BACK, "").split(",") if run}
    return taken


def _is_later(commit: CommitInfo, runs: Collection[str], taken: Collection[str]) -> bool:
    properties = commit.properties
    run = properties.get(RUN_ID, "")
    requeued = {each for each in properties.get(REQUEUED_RUNS, "").split(",") if each}
    is_of_these = bool(requeued) and requeued <= {*runs}
    return bool(run) and run not in taken and not properties.get(ROLLED_BACK) and not is_of_these


def _changed_rows(catalog: BranchCatalog, io: Mapping[str, str], commit: CommitInfo, table: str) -> bool:
    before = catalog.table_version(catalog.main, table, commit.parent) if commit.parent else None
    after = catalog.table_version(catalog.main, table, commit.hash)
    if after is None or before == after:
        return False
    return not TableState.load(after, before, io).compacted_since
