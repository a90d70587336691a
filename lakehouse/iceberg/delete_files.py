"""Delete files that apply to a data file, as far as metadata determines them.

Source of the rules: the Iceberg table specification, sections "Scan planning", "Position delete files" and "Deletion
vectors". Equality deletes are not applied here: Spark reads tables with equality deletes.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pyiceberg.manifest import DataFile, DataFileContent, ManifestContent, ManifestEntry

from lakehouse.iceberg.delete_manifests import live_entries, only_path, path_bounds
from lakehouse.iceberg.table_state import TableState
from sluice.metadata.statistics import DeleteFile

_MAX_FILES = 1000
_FORMS = ("PARQUET", "PUFFIN")
_LATEST = 2**62


@dataclass(frozen=True)
class DeleteFiles:
    """The live delete files of a table."""

    entries: Sequence[ManifestEntry] = ()
    _known: dict[str, DeleteFile] = field(default_factory=dict)

    @staticmethod
    def of(state: TableState) -> "DeleteFiles":
        """Read the delete files of a table's last snapshot."""
        return DeleteFiles(
            [
                entry
                for manifest in state.manifests
                if manifest.content == ManifestContent.DELETES
                for entry in live_entries(manifest, state.table.io)
            ]
        )

    @cached_property
    def latest(self) -> tuple[int, int]:
        """Highest sequence numbers of position deletes and of equality deletes; -1 if there are none.

        Partitions are not compared, so a file without deletes may count as one with deletes. The statistics then prove
        less, but nothing wrong.
        """
        position = max(map(_number, self._positions), default=-1)
        equality = max((_number(each) for each in self.entries if _is_equality(each)), default=-1)
        return position, equality

    def of_file(self, number: int, file: DataFile) -> tuple[list[DeleteFile], str]:
        """Return the delete files that may contain positions of a data file, or the reason why metadata cannot tell.

        Args:
            number: the sequence number of the data file.
        """
        if number < self.latest[1]:
            return [], "equality deletes apply"
        if len(self._positions) > _MAX_FILES:
            return [], f"there are more than {_MAX_FILES:,} delete files"
        named_by = [each for each in self._by_path.get(file.file_path, ()) if _number(each) >= number]
        if any(_partition(each.data_file) != _partition(file) for each in named_by):
            return [], "a delete file of another partition names it"
        applying = [
            entry
            for entry in self._by_partition.get(_partition(file), ())
            if _number(entry) >= number and _may_name(entry.data_file, file.file_path)
        ]
        forms = {_form(entry.data_file) for entry in applying}
        if other := forms.difference(_FORMS):
            return [], f"a delete file is {sorted(other)[0]}"
        chosen = {entry.data_file.file_path: self._delete_file(entry.data_file) for entry in applying}
        return list(chosen.values()), ""

    @cached_property
    def _positions(self) -> list[ManifestEntry]:
        return [entry for entry in self.entries if not _is_equality(entry)]

    @cached_property
    def _by_path(self) -> dict[str, list[ManifestEntry]]:
        """Position-delete files that name exactly one data file, by its path."""
        groups: dict[str, list[ManifestEntry]] = {}
        for entry in self._positions:
            if path := only_path(entry.data_file):
                groups.setdefault(path, []).append(entry)
        return groups

    @cached_property
    def _by_partition(self) -> dict[tuple[int, str], list[ManifestEntry]]:
        groups: dict[tuple[int, str], list[ManifestEntry]] = {}
        for entry in self._positions:
            groups.setdefault(_partition(entry.data_file), []).append(entry)
        return groups

    @cached_property
    def _rows(self) -> Counter[str]:
        rows: Counter[str] = Counter()
        for entry in self._positions:
            rows[entry.data_file.file_path] += entry.data_file.record_count
        return rows

    @cached_property
    def _vectors(self) -> Counter[str]:
        return Counter(entry.data_file.file_path for entry in self._positions)

    def _delete_file(self, file: DataFile) -> DeleteFile:
        path = file.file_path
        if path not in self._known:
            self._known[path] = DeleteFile(path, _form(file), self._rows[path], self._vectors[path])
        return self._known[path]


def _number(entry: ManifestEntry) -> int:
    return _LATEST if entry.sequence_number is None else entry.sequence_number


def _partition(file: DataFile) -> tuple[int, str]:
    return file.spec_id, str(file.partition)


def _is_equality(entry: ManifestEntry) -> bool:
    return entry.data_file.content == DataFileContent.EQUALITY_DELETES


def _form(file: DataFile) -> str:
    return str(getattr(file.file_format, "name", file.file_format)).upper()


def _may_name(deletes: DataFile, path: str) -> bool:
    """Return True if a delete file may name a data file, by its bounds. One without bounds may name any."""
    lower, upper = path_bounds(deletes)
    named = path.encode()
    return (lower is None or lower <= named) and (upper is None or named <= upper)
