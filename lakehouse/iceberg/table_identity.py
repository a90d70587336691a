"""Which table a version is of: a table is its uuid, and not its name.

Another program may drop a table and create one of the same name. Rows of the first are not in the second.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from lakehouse.catalog import BranchCatalog, TableVersion
from lakehouse.iceberg.table_state import load_table
from sluice.errors import CatalogRefused, NoSuchBranch
from sluice.input.selection import LoadedFile


def table_uuid(version: TableVersion, io: Mapping[str, str]) -> str:
    """Return the uuid of a version's table; empty where its metadata file is gone.

    A catalog with a commit log has it there (`identity`), also where another program purged the files.
    """
    uuid, slash, _ = version.identity.partition("/")
    if slash:
        return uuid
    try:
        return str(load_table(version, io).metadata.table_uuid)
    except (FileNotFoundError, ValueError):  # PyIceberg raises the second for a location that no store has
        return ""


def is_another_table(before: TableVersion | None, after: TableVersion | None, io: Mapping[str, str]) -> bool:
    """Return whether both versions exist, and are known to be of two tables."""
    if before is None or after is None or before == after:
        return False
    uuids = {table_uuid(before, io), table_uuid(after, io)}
    return len(uuids - {""}) == 2


def loads_that_main_holds(
    catalog: BranchCatalog, io: Mapping[str, str], loads: Mapping[str, LoadedFile], at: str
) -> dict[str, LoadedFile]:
    """Return the loads whose table is still the one on main: rows went with a table that was dropped.

    Where that is not known any more, a load counts: files are not loaded twice.

    Args:
        loads: by the identity of the file.
        at: the hash of main that is asked about.
    """
    lost: set[tuple[str, str]] = set()
    for table in {load.table for load in loads.values()}:
        commits = {load.commit: datetime.fromisoformat(load.at) for load in loads.values() if load.table == table}
        ordered = sorted(commits, key=lambda commit: commits[commit])
        lost |= {(table, commit) for commit in _before_present_table(catalog, io, table, ordered, at)}
    return {identity: load for identity, load in loads.items() if (load.table, load.commit) not in lost}


def _before_present_table(
    catalog: BranchCatalog, io: Mapping[str, str], table: str, commits: Sequence[str], at: str
) -> Sequence[str]:
    """Return the commits on main at which it held another table of this name than it does now.

    Args:
        commits: the oldest first. A name stands for one table after the other, so that few of them are looked at.
    """
    present = catalog.table_version(catalog.main, table, at)

    def is_lost(commit: str) -> bool:
        try:
            then = catalog.table_version(catalog.main, table, commit)
        except (CatalogRefused, NoSuchBranch):  # the catalog does not keep so old a hash
            return False
        return then is not None and (present is None or is_another_table(then, present, io))

    first, end = 0, len(commits)
    if not commits or not is_lost(commits[0]):
        return ()
    while first < end:
        middle = (first + end) // 2
        first, end = (middle + 1, end) if is_lost(commits[middle]) else (first, middle)
    return commits[:first]
