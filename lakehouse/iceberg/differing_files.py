"""Find the data files that may make two versions of a table differ: those of one version, or with other deletes.

Files that both versions list with the same deletes are never read.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

from pyiceberg.manifest import DataFile, ManifestContent, ManifestEntry
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.types import ListType, MapType, NestedField, StructType

from lakehouse.catalog import TableVersion
from lakehouse.iceberg.delete_files import DeleteFiles
from lakehouse.iceberg.live_files import LiveFileDiff, live_file_diff
from lakehouse.iceberg.readable_files import duckdb_reads
from lakehouse.iceberg.statistics import deletes_may_apply, schema_fields
from lakehouse.iceberg.table_state import TableState, load_table, snapshot_property
from sluice.contracts.table_diffs import FilesRead
from sluice.diff.schema_changes import Column
from sluice.metadata.statistics import DeleteFile, SchemaField

_TOTAL_SIZE = "total-files-size"
_Deletes = Mapping[str, Sequence[DeleteFile]]
"""The delete files that apply to each data file, by its path."""


@dataclass(frozen=True)
class VersionFiles:
    """The differing data files of one version of a table."""

    state: TableState | None
    """The version; None if the table does not exist in it."""
    own: Sequence[DataFile] = ()
    """Files that only this version lists."""
    marked: Sequence[DataFile] = ()
    """Files of both versions whose deletes differ."""
    deletes: _Deletes = field(default_factory=dict)
    """The delete files of this version that apply to the files of `own` and `marked`."""

    @cached_property
    def fields(self) -> list[SchemaField]:
        """Columns of the table."""
        return schema_fields(self.state.table.schema()) if self.state else []

    @cached_property
    def columns(self) -> list[Column]:
        """Columns of the table at every level of nesting."""
        return nested_columns(self.state.table.schema()) if self.state else []

    @property
    def snapshot_id(self) -> int | None:
        """Snapshot of the version."""
        return self.state.table.metadata.current_snapshot_id if self.state else None

    @property
    def files(self) -> list[DataFile]:
        """All of these data files."""
        return [*self.own, *self.marked]

    @cached_property
    def partitions(self) -> dict[str, str]:
        """Partition of each of these data files, by its path; empty for a table without partitions."""
        if self.state is None or not self.state.partitions:
            return {}
        specs, schema = self.state.table.specs(), self.state.table.schema()
        partitions = {}
        for file in self.files:
            with suppress(ValueError):  # a column of an older partition spec was dropped
                partitions[file.file_path] = specs[file.spec_id].partition_to_path(file.partition, schema)
        return partitions

    @property
    def by_duckdb(self) -> bool:
        """True if DuckDB reads these files by itself."""
        return self.state is None or duckdb_reads(self.state, self.fields, self.files)

    @property
    def counted_rows(self) -> int | None:
        """Number of rows in these files by metadata; None if rows of them are deleted in place."""
        is_exact = not self.marked and not any(self.deletes.get(file.file_path) for file in self.own)
        return sum(file.record_count for file in self.own) if is_exact else None


@dataclass(frozen=True)
class DifferingFiles:
    """The differing data files of two versions of a table."""

    before: VersionFiles
    after: VersionFiles
    problem: str = ""
    """Reason why the rows cannot be compared; empty if they can."""

    @property
    def read(self) -> FilesRead:
        """Numbers of the differing files, of all files that the versions list."""
        differing = {file.file_path: file.file_size_in_bytes for file in (*self.before.files, *self.after.files)}
        newest = self.after.state or self.before.state
        if newest is None:
            return FilesRead()
        lost = [] if self.after.state is None else self.before.own
        size = _total_size(newest)
        return FilesRead(
            files=len(differing),
            bytes=sum(differing.values()),
            all_files=_file_count(newest) + len(lost),
            all_bytes=None if size is None else size + sum(file.file_size_in_bytes for file in lost),
        )


def find_differing_files(
    before: TableVersion | None, after: TableVersion | None, io: Mapping[str, str]
) -> DifferingFiles:
    """Compare the live files of two versions of a table, from metadata alone."""
    old, new = (load_table(each, io) if each else None for each in (before, after))
    live = live_file_diff(old, new)
    states = [TableState(table, None) if table else None for table in (old, new)]
    deletes = [DeleteFiles.of(state) if state else DeleteFiles() for state in states]
    applied = [_applied(each, entries) for each, entries in zip(deletes, (live.removed, live.added), strict=True)]
    marked, marks = _marked(new, live, deletes)
    versions = [
        VersionFiles(state, [each.data_file for each in entries], marked, {**of_own.files, **of_marked.files})
        for state, entries, of_own, of_marked in zip(states, (live.removed, live.added), applied, marks, strict=True)
    ]
    problems = [_deletes_by_value(live), *(each.problem for each in (*applied, *marks))]
    return DifferingFiles(versions[0], versions[1], next(filter(None, problems), ""))


@dataclass
class _Applied:
    """The delete files that apply to some data files, and the first reason why metadata cannot tell."""

    files: dict[str, list[DeleteFile]] = field(default_factory=dict)
    problem: str = ""

    def add(self, deletes: DeleteFiles, entry: ManifestEntry) -> None:
        number = entry.sequence_number if entry.sequence_number is not None else 0
        if deletes_may_apply(number, deletes.latest):
            path = entry.data_file.file_path
            self.files[path], problem = deletes.of_file(number, entry.data_file)
            self.problem = self.problem or problem


def _applied(deletes: DeleteFiles, entries: Sequence[ManifestEntry]) -> _Applied:
    applied = _Applied()
    for entry in entries:
        applied.add(deletes, entry)
    return applied


def _marked(
    new: StaticTable | None, live: LiveFileDiff, deletes: Sequence[DeleteFiles]
) -> tuple[list[DataFile], tuple[_Applied, _Applied]]:
    """Return the files of both versions whose deletes differ, with the delete files of each version."""
    before, after = _Applied(), _Applied()
    if new is None or not (live.added_deletes or live.removed_deletes) or _deletes_by_value(live):
        return [], (before, after)
    added = {entry.data_file.file_path for entry in live.added}
    marked = []
    for entry in _live_entries(new):
        path = entry.data_file.file_path
        if path in added:
            continue
        old, now = _Applied(), _Applied()
        old.add(deletes[0], entry)
        now.add(deletes[1], entry)
        if {each.path for each in old.files.get(path, ())} == {each.path for each in now.files.get(path, ())}:
            continue
        marked.append(entry.data_file)
        before.files.update(old.files)
        after.files.update(now.files)
        before.problem, after.problem = before.problem or old.problem, after.problem or now.problem
    return marked, (before, after)


def _deletes_by_value(live: LiveFileDiff) -> str:
    return "rows were deleted by value, which only Spark reads" if live.has_equality_deletes else ""


def _live_entries(table: StaticTable) -> Iterator[ManifestEntry]:
    return TableState(table, None).entries(added_only=False)


def _file_count(state: TableState) -> int:
    return sum(
        (each.added_files_count or 0) + (each.existing_files_count or 0)
        for each in state.manifests
        if each.content == ManifestContent.DATA
    )


def _total_size(state: TableState) -> int | None:
    snapshot = state.table.current_snapshot()
    stated = snapshot_property(snapshot, _TOTAL_SIZE) if snapshot else "0"
    return int(stated) if stated and stated.isdigit() else None


def nested_columns(schema: Schema) -> list[Column]:
    """Return the columns of a schema at every level of nesting, outer ones first."""
    return list(_walk(schema.fields, ()))


def _walk(fields: Sequence[NestedField], outer: tuple[str, ...]) -> Iterator[Column]:
    for each in fields:
        path, kind = (*outer, each.name), each.field_type
        if isinstance(kind, StructType):
            name, inner = "struct", kind.fields
        elif isinstance(kind, ListType):
            name, inner = "list", (kind.element_field,)
        elif isinstance(kind, MapType):
            name, inner = "map", (kind.key_field, kind.value_field)
        else:
            name, inner = str(kind), ()
        yield Column(each.field_id, path, name, each.required)
        yield from _walk(inner, path)
