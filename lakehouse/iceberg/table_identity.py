"""Identity of tables: the uuid identifies a table, not the name.

Another program may drop a table and create one of the same name. Rows of the first are not in the second.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from lakehouse.catalog import BranchCatalog, TableVersion
from lakehouse.iceberg.table_state import load_table
from sluice.errors import CatalogRefused, NoSuchBranch
from sluice.input.held_files import LoadedFile


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
        commits = {load.commit: datetime.fromisoformat(load.at) for load in loads if load.table == table}
        ordered = sorted(commits, key=lambda commit: commits[commit])
        lost |= {(table, commit) for commit in commits_before_present_table(catalog, io, table, ordered, at)}
    return [load for load in loads if (load.table, load.commit) not in lost]


def commits_before_present_table(
    catalog: BranchCatalog, io: Mapping[str, str], table: str, commits: Sequence[str], at: str
) -> Sequence[str]:
    """Return the commits on main at which this name stood for another table than it does now.

    Args:
        commits: commits in effect, oldest first. A name stands for one table after the other, so a binary search reads
            few of them.
    """
    present = catalog.table_version(catalog.main, table, at)

    def is_lost(commit: str) -> bool:
        try:
            then = catalog.table_version(catalog.main, table, commit)
        except (CatalogRefused, NoSuchBranch):  # the catalog no longer has so old a hash
            return False
        return then is not None and (present is None or is_another_table(then, present, io))

    first, end = 0, len(commits)
    if not commits or not is_lost(commits[0]):
        return ()
    while first < end:
        middle = (first + end) // 2
        first, end = (middle + 1, end) if is_lost(commits[middle]) else (first, middle)
    return commits[:first]
