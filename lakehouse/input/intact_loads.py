"""Decide if main still has the rows of a load exactly as the load wrote them, from the table's live files."""

from collections.abc import Mapping

from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.live_files import live_file_diff
from lakehouse.iceberg.table_state import load_table
from sluice.errors import CatalogRefused, NoSuchBranch
from sluice.input.held_files import LoadedFile


def is_intact(catalog: BranchCatalog, io: Mapping[str, str], load: LoadedFile, before: str, at: str) -> bool:
    """Return True if every data file that a load added is live, and no row was deleted in place since.

    Such a load needs no repeat: nothing replaced its rows. False if that cannot be determined, or if a rewrite, such
    as a compaction, moved the rows to other files.

    Args:
        before: the hash of main before the load.
        at: the hash of main to compare with.
    """
    try:
        versions = [catalog.table_version(catalog.main, load.table, hash) for hash in (before, load.commit, at)]
        earlier, then, now = (load_table(version, io) if version else None for version in versions)
        if then is None or now is None:
            return False
        added = {entry.data_file.file_path for entry in live_file_diff(earlier, then).added}
        since = live_file_diff(then, now)
    except (CatalogRefused, NoSuchBranch, FileNotFoundError, ValueError):  # so old a hash or file is not kept
        return False
    return (
        bool(added) and not since.added_deletes and added.isdisjoint(each.data_file.file_path for each in since.removed)
    )
