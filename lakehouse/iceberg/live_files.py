"""Find the live files that a run added and removed, by comparing manifests before and after file by file.

Snapshots and their summaries are not used, since a job writes them itself. A job can expire them, replace a branch or
the whole table, or roll back. Source of the rules: the Iceberg table specification, sections "Manifests", "Scan
planning" and "Position delete files".
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntry, ManifestFile
from pyiceberg.table import StaticTable

from lakehouse.iceberg.delete_manifests import content_offset, live_entries, only_path, path_bounds


@dataclass(frozen=True)
class LiveFileDiff:
    """Live files of only one of two versions of a table."""

    added: Sequence[ManifestEntry] = ()
    """Data files that became live."""
    removed: Sequence[ManifestEntry] = ()
    """Data files that are no longer live."""
    added_deletes: Sequence[ManifestEntry] = ()
    removed_deletes: Sequence[ManifestEntry] = ()

    @property
    def added_rows(self) -> int:
        """Number of rows of the added data files."""
        return _rows(self.added)

    @property
    def deleted_rows(self) -> int:
        """Upper bound of the deleted rows: the rows of removed data files, and those that position deletes mark."""
        marked, marked_before = _marked_rows(self.added_deletes), _marked_rows(self.removed_deletes)
        # A delete file that replaces an earlier one for the same data file repeats its deletes.
        repeated = {path: min(rows, marked_before.get(path, 0)) for path, rows in marked.items() if path}
        return _rows(self.removed) + sum(marked.values()) - sum(repeated.values())

    @property
    def marked_files(self) -> set[str]:
        """Data files named by the added position-delete files, as far as each of these names only one."""
        return {path for path in _marked_rows(self.added_deletes) if path}

    @property
    def has_equality_deletes(self) -> bool:
        """True if equality deletes were added or removed. No metadata records how many rows they delete."""
        return any(not _is_position_delete(entry) for entry in (*self.added_deletes, *self.removed_deletes))

    @property
    def removes_nothing(self) -> bool:
        """True if no data file was removed and no row was deleted in place."""
        return not self.removed and not self.added_deletes


def live_file_diff(before: StaticTable | None, after: StaticTable | None) -> LiveFileDiff:
    """Compare the live files of two versions of a table. None stands for a table without files.

    Manifests are immutable, so those that both versions list are not read.
    """
    manifests_before, manifests_after = _manifests(before), _manifests(after)
    old = _entries(before, manifests_before.keys() - manifests_after.keys(), manifests_before)
    new = _entries(after, manifests_after.keys() - manifests_before.keys(), manifests_after)
    added = [entry for key, entry in new.items() if key not in old]
    removed = [entry for key, entry in old.items() if key not in new]
    return LiveFileDiff(
        added=[entry for entry in added if _is_data(entry)],
        removed=[entry for entry in removed if _is_data(entry)],
        added_deletes=[entry for entry in added if not _is_data(entry)],
        removed_deletes=[entry for entry in removed if not _is_data(entry)],
    )


def _manifests(table: StaticTable | None) -> dict[str, ManifestFile]:
    snapshot = table.current_snapshot() if table else None
    if table is None or snapshot is None:
        return {}
    return {manifest.manifest_path: manifest for manifest in snapshot.manifests(table.io)}


def _entries(
    table: StaticTable | None, paths: Iterable[str], manifests: Mapping[str, ManifestFile]
) -> dict[tuple[object, ...], ManifestEntry]:
    """Return the live files that some manifests list, by a unique key, in a stable order."""
    if table is None:
        return {}
    return {_key(entry.data_file): entry for path in sorted(paths) for entry in live_entries(manifests[path], table.io)}


def _key(file: DataFile) -> tuple[object, ...]:
    """Return a unique key of a file. Deletion vectors share a Puffin file, and differ by offset and data file."""
    if file.content == DataFileContent.DATA:
        return (file.file_path,)
    return (file.file_path, content_offset(file), path_bounds(file))


def _is_data(entry: ManifestEntry) -> bool:
    return entry.data_file.content == DataFileContent.DATA


def _is_position_delete(entry: ManifestEntry) -> bool:
    return entry.data_file.content == DataFileContent.POSITION_DELETES


def _marked_rows(deletes: Iterable[ManifestEntry]) -> dict[str, int]:
    """Sum position deletes by the data file that they name; under an empty name if there may be several."""
    marked: dict[str, int] = {}
    for entry in filter(_is_position_delete, deletes):
        path = only_path(entry.data_file)
        marked[path] = marked.get(path, 0) + entry.data_file.record_count
    return marked


def _rows(entries: Iterable[ManifestEntry]) -> int:
    return sum(entry.data_file.record_count for entry in entries)
