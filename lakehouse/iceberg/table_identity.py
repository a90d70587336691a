"""Identity of tables: the uuid identifies a table, not the name.

Another program may drop a table and create one of the same name. Rows of the first are not in the second.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from lakehouse.catalog import BranchCatalog, TableVersion
from lakehouse.iceberg.table_state import load_table, snapshot_property
from sluice.errors import CatalogRefused, NoSuchBranch
from sluice.input.held_files import LoadedFile
from sluice.publishing.commit_properties import RUN_ID


def table_uuid(version: TableVersion, io: Mapping[str, str]) -> str:
    """Return the uuid of a version's table; empty if its metadata file was deleted.

    A catalog with a commit log records the uuid (`identity`), even if another program purged the files.
    """
    uuid, slash, _ = version.identity.partition("/")
    if slash:
        return uuid
    try:
        return str(load_table(version, io).metadata.table_uuid)
    except (FileNotFoundError, ValueError):  # PyIceberg raises the second for a location without a known store
        return ""


def is_another_table(before: TableVersion | None, after: TableVersion | None, io: Mapping[str, str]) -> bool:
    """Return True if both versions exist and are known to belong to two different tables."""
    if before is None or after is None or before == after:
        return False
    uuids = {table_uuid(before, io), table_uuid(after, io)}
    return len(uuids - {""}) == 2


def loads_on_main(
    catalog: BranchCatalog, io: Mapping[str, str], loads: Sequence[LoadedFile], at: str
) -> list[LoadedFile]:
    """Return the loads whose table is still the one on main. Dropping a table removed the rows of its loads.

    If that can no longer be determined, a load counts, so that files are not loaded twice.

    Args:
        loads: loads in effect. A roll-back of a roll-back may put an earlier table back, and hide the order of tables.
        at: the hash of main to compare with.
    """
    lost: set[tuple[str, str]] = set()
    for table in {load.table for load in loads}:
        of_table = [load for load in loads if load.table == table]
        runs = {load.commit: load.run_id for load in sorted(of_table, key=lambda load: datetime.fromisoformat(load.at))}
        lost |= {(table, commit) for commit in commits_of_other_tables(catalog, io, table, runs, at)}
    return [load for load in loads if (load.table, load.commit) not in lost]


def commits_of_other_tables(
    catalog: BranchCatalog, io: Mapping[str, str], table: str, runs: Mapping[str, str], at: str
) -> set[str]:
    """Return the commits on main at which this name stood for another table than it does now.

    The present table has the snapshots of its own runs. After the first commit of such a run, those of runs without a
    snapshot are looked up one by one: another table may have had the name until this one was restored. Before it, where
    snapshots may have expired, a binary search reads few commits.

    Args:
        runs: run id by commit, for commits in effect, oldest first.
    """
    present = catalog.table_version(catalog.main, table, at)

    def is_lost(commit: str) -> bool:
        try:
            then = catalog.table_version(catalog.main, table, commit)
        except (CatalogRefused, NoSuchBranch):  # the catalog no longer has so old a hash
            return False
        return then is not None and (present is None or is_another_table(then, present, io))

    commits, own = list(runs), _runs_of(present, io)
    first_own = next((number for number, commit in enumerate(commits) if runs[commit] in own), len(commits))
    lost = {commit for commit in commits[first_own:] if runs[commit] not in own and is_lost(commit)}
    first, end = 0, first_own
    if not first_own or not is_lost(commits[0]):
        return lost
    while first < end:
        middle = (first + end) // 2
        first, end = (middle + 1, end) if is_lost(commits[middle]) else (first, middle)
    return lost | {*commits[:first]}


def _runs_of(version: TableVersion | None, io: Mapping[str, str]) -> set[str]:
    """Return the ids of the runs that made the snapshots of a table, as far as it keeps them."""
    if version is None:
        return set()
    try:
        snapshots = load_table(version, io).metadata.snapshots
    except (FileNotFoundError, ValueError):  # as in `table_uuid`
        return set()
    return {run for each in snapshots if (run := snapshot_property(each, RUN_ID))}
