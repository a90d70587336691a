"""Last check before a merge: a table lists each file that a run adds only once."""

from collections import Counter
from collections.abc import Mapping, Sequence

from pyiceberg.manifest import FileFormat, ManifestFile
from pyiceberg.table import StaticTable

from lakehouse.catalog import BranchCatalog, TableDiff
from lakehouse.iceberg.table_state import TableState, load_table

_MOST_FILES = 200_000
"""Maximum number of files to compare a whole table. In a larger one, only files added after a hash count."""


def repeated_files(
    catalog: BranchCatalog, io: Mapping[str, str], diffs: Sequence[TableDiff], since: str, *, all_files: bool = False
) -> dict[str, list[str]]:
    """Return, by table, the files added by a run that the table would then list more than once.

    Args:
        since: a hash of main from before the run wrote its files. Manifests of the table at that hash cannot list these
            files.
        all_files: True to compare files from before `since` too, if it is unknown who wrote the added files.
    """
    repeated: dict[str, list[str]] = {}
    for diff in diffs:
        if diff.after is None:
            continue
        state = TableState.load(diff.after, diff.before, io)
        whole = all_files and _count_files(state) <= _MOST_FILES
        earlier = None if whole else catalog.table_version(catalog.main, diff.name, since)
        files = files_added_twice(state, load_table(earlier, io) if earlier else None)
        if files:
            repeated[diff.name] = files
    return repeated


def files_added_twice(state: TableState, since: StaticTable | None) -> list[str]:
    """Return the live data and delete files that the run added and that the table lists more than once.

    Args:
        since: the table before the run wrote its files. Its manifests are not read.
    """
    made = {snapshot.snapshot_id for snapshot in state.snapshots}
    if not made:
        return []
    known = {manifest.manifest_path for manifest in _manifests(since)} if since else set[str]()
    listed, added = Counter[str](), set[str]()
    for manifest in state.manifests:
        if manifest.manifest_path in known:
            continue
        for entry in manifest.fetch_manifest_entry(state.table.io, discard_deleted=True):
            file = entry.data_file
            if file.file_format == FileFormat.PUFFIN:
                continue  # one file contains the deletion vectors of many data files
            listed[file.file_path] += 1
            if entry.snapshot_id in made:
                added.add(file.file_path)
    return sorted(path for path in added if listed[path] > 1)


def _count_files(state: TableState) -> int:
    return sum((each.added_files_count or 0) + (each.existing_files_count or 0) for each in state.manifests)


def _manifests(table: StaticTable) -> list[ManifestFile]:
    snapshot = table.current_snapshot()
    return snapshot.manifests(table.io) if snapshot else []
