"""Compare two versions of one table: by metadata where it suffices, else by the rows of the differing files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.manifest import DataFile

from engine.duckdb_session import ParquetView
from engine.queries.runner import QueryRunner
from engine.queries.specification import DiffedVersion, DiffSpecification
from lakehouse.catalog import TableDiff
from lakehouse.iceberg.diffed_rows import count_alone, rows_to_read, sample_files
from lakehouse.iceberg.differing_files import DifferingFiles, VersionFiles
from lakehouse.lake.row_files import RowsRequest
from sluice.contracts.table_diffs import FilesRead, RowDifferences, TableDiffResult, TableKey
from sluice.diff.columns import match_columns, with_field_names
from sluice.diff.keys import MatchedKey, key_notes, match_key
from sluice.diff.samples import MAX_SAMPLE_BYTES, listed_changes
from sluice.diff.schema_changes import schema_changes
from sluice.diff.state import table_state
from sluice.errors import InvalidInput
from sluice.metadata.statistics import DeleteFile

_BEFORE, _AFTER = "before_files", "after_files"
_MIN_SECONDS = 5
"""Time that a comparison needs at least, in seconds; with less, it does not begin."""


@dataclass(frozen=True)
class DiffedTable:
    """A table that differs, with the data files that may make the difference."""

    diff: TableDiff
    files: DifferingFiles
    queries: QueryRunner

    @property
    def name(self) -> str:
        """Name of the table."""
        return self.diff.name

    @property
    def column_names(self) -> list[str]:
        """Names of its columns, before and after."""
        return [each.name for each in (*self.files.before.fields, *self.files.after.fields)]

    @property
    def versions(self) -> tuple[object, ...]:
        """The two versions, which identify the difference."""
        return tuple(
            each and (each.metadata_location, each.snapshot_id) for each in (self.diff.before, self.diff.after)
        )

    async def compare(self, key: TableKey, rows: int, seconds: int) -> TableDiffResult:
        """Return the diff of the table. If its rows cannot be compared, the diff says why.

        Args:
            rows: maximum number of sample rows of each kind.
            seconds: maximum duration, in seconds.
        """
        before, after = self.files.before, self.files.after
        is_compared = before.state is not None and after.state is not None
        matched = match_key(key, before.fields, after.fields) if is_compared else MatchedKey(key)
        counted = count_alone(self.files)
        sampled = [*sample_files(before, rows), *sample_files(after, rows)] if counted else None
        problem, differences = self.files.problem, counted
        try:
            if not problem and (sampled is None or sampled):
                answer = await self._rows(matched, rows, seconds, sampled)
                differences = _with_sample(counted, answer) if counted else answer
        except InvalidInput as error:
            problem = str(error)
        if self.files.problem:
            differences = None
        changes = schema_changes(before.columns, after.columns) if is_compared else []
        state = table_state(
            existed=self.diff.before is not None,
            exists=self.diff.after is not None,
            rows=differences,
            changes=changes,
        )
        listed, more = listed_changes(changes)
        return TableDiffResult(
            table=self.name,
            state=state,
            snapshot_before=before.snapshot_id,
            snapshot_after=after.snapshot_id,
            key=matched.key,
            notes=_notes(matched, differences) if is_compared and counted is None else [],
            problem=problem,
            rows=differences,
            schema_changes=listed,
            more_schema_changes=more,
            read=self._read(sampled),
        )

    async def _rows(
        self, key: MatchedKey, rows: int, seconds: int, sampled: Sequence[DataFile] | None
    ) -> RowDifferences:
        if seconds < _MIN_SECONDS:
            raise InvalidInput("the time for this diff was used up by other tables: choose this one with --table")
        before, after = self.files.before, self.files.after
        in_memory = not (before.by_duckdb and after.by_duckdb)
        versions = {_BEFORE: before, _AFTER: after}
        specified = {
            name: _specified(name, version, in_memory=in_memory, chosen=sampled) for name, version in versions.items()
        }
        specification = DiffSpecification(
            before=specified[_BEFORE],
            after=specified[_AFTER],
            columns=match_columns(before.fields, after.fields),
            key=key.ids,
            rows=rows,
            sample_bytes=MAX_SAMPLE_BYTES,
            only_sample=sampled is not None,
        )
        request = _request(versions, sampled) if in_memory else ""
        return await self.queries.compare(specification, seconds, request)

    def _read(self, sampled: Sequence[DataFile] | None) -> FilesRead:
        read = self.files.read
        if self.files.problem:
            return read.model_copy(update={"files": 0, "bytes": 0})
        if sampled is None:
            return read
        size = sum(file.file_size_in_bytes for file in sampled)
        return read.model_copy(update={"files": len(sampled), "bytes": size})


def _specified(
    name: str, version: VersionFiles, *, in_memory: bool, chosen: Sequence[DataFile] | None
) -> DiffedVersion:
    """Return the specification of a version.

    Args:
        chosen: the only files to read; None means all.
    """
    if in_memory:
        nothing = ParquetView(name, (), ())
        return DiffedVersion(files=nothing, marked=nothing, in_memory=True)
    fields = with_field_names(version.fields)
    own = [file.file_path for file in _chosen(version.own, chosen)]
    marked = [file.file_path for file in version.marked]
    return DiffedVersion(
        files=ParquetView(name, fields, own, _of(version.deletes, own), with_position=True),
        marked=ParquetView(f"{name}_marked", fields, marked, with_position=True),
        deletes=_of(version.deletes, marked),
        partitions=version.partitions,
    )


def _of(deletes: Mapping[str, Sequence[DeleteFile]], paths: Sequence[str]) -> dict[str, Sequence[DeleteFile]]:
    return {path: deletes[path] for path in paths if deletes.get(path)}


def _request(versions: Mapping[str, VersionFiles], chosen: Sequence[DataFile] | None) -> str:
    tables = [rows_to_read(name, version, _chosen(version.files, chosen)) for name, version in versions.items()]
    io = next((dict(each.state.table.io.properties) for each in versions.values() if each.state), {})
    return RowsRequest(tables=tables, io=io).model_dump_json()


def _chosen(files: Sequence[DataFile], chosen: Sequence[DataFile] | None) -> Sequence[DataFile]:
    if chosen is None:
        return files
    paths = {file.file_path for file in chosen}
    return [file for file in files if file.file_path in paths]


def _with_sample(counted: RowDifferences, sample: RowDifferences) -> RowDifferences:
    return counted.model_copy(update={"added_rows": sample.added_rows, "removed_rows": sample.removed_rows})


def _notes(key: MatchedKey, rows: RowDifferences | None) -> list[str]:
    return [*([key.note] if key.note else []), *(key_notes(rows) if rows else [])]
