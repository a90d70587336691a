"""Rows that delete files mark are compared, and only those: the rest of their data files is the same."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest_list,
)
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.typedef import Record

from activities.lake.table_diff import DiffedTable
from lakehouse.catalog import TableDiff, TableVersion
from lakehouse.iceberg.differing_files import find_differing_files
from lakehouse.iceberg.table_state import load_table
from sluice.contracts.table_diffs import RowDifferences, TableDiffResult, TableKey
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake
from tests.harness.queries import BlockingQueries, blocking_queries

TABLE = "t.x"


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingQueries]:
    with blocking_queries(tmp_path_factory.mktemp("queries")) as queries:
        yield queries


class Marked:
    """A table whose rows another engine marks as deleted in place."""

    def __init__(self, folder: Path) -> None:
        catalog = MemoryCatalog()
        catalog.initialize_main()
        self.folder, self.lake = folder, MemoryLake(catalog, folder / "tables", columns=("id", "v"))
        for first in (0, 10):
            self.lake.append_rows("main", TABLE, [{"id": each, "v": 0} for each in range(first, first + 10)])

    @property
    def version(self) -> TableVersion:
        version = self.lake.catalog.table_version("main", TABLE)
        assert version
        return version

    def data_file(self, with_id: int) -> str:
        """Return the path of the data file that has a row."""
        tasks = load_table(self.version, {}).scan().plan_files()
        paths = [task.file.file_path for task in tasks]
        return next(path for path in paths if with_id in pq.read_table(path.removeprefix("file://"))["id"].to_pylist())

    def mark(self, path: str, positions: Sequence[int], *, by_value: bool = False) -> TableVersion:
        """Commit a delete file to the table, in place of the others; return the new version."""
        table = load_table(self.version, {})
        metadata: Any = table.metadata
        number = metadata.last_sequence_number + 1
        file = self.folder / f"deletes-{number}.parquet"
        pq.write_table(pa.table({"file_path": [path] * len(positions), "pos": pa.array(positions, pa.int64())}), file)
        snapshot = table.current_snapshot()
        assert snapshot
        id = snapshot.snapshot_id + 1
        kept = [each for each in snapshot.manifests(table.io) if each.content == ManifestContent.DATA]
        manifests = [*kept, self._manifest(file, path, len(positions), number, id, by_value=by_value)]
        listed = self.folder / f"list-{number}.avro"
        with write_manifest_list(
            format_version=2,
            output_file=PyArrowFileIO().new_output(str(listed)),
            snapshot_id=id,
            parent_snapshot_id=snapshot.snapshot_id,
            sequence_number=number,
            avro_compression="null",
        ) as writer:
            writer.add_manifests(manifests)
        added = Snapshot(
            snapshot_id=id, parent_snapshot_id=snapshot.snapshot_id, sequence_number=number,
            timestamp_ms=snapshot.timestamp_ms + 1, manifest_list=str(listed),
            summary=Summary(Operation.DELETE), schema_id=metadata.current_schema_id,
        )  # fmt: skip
        changed = self.lake.rewrite(
            self.version,
            snapshots=[*metadata.snapshots, added],
            current_snapshot_id=id,
            last_sequence_number=number,
            refs={"main": metadata.refs["main"].model_copy(update={"snapshot_id": id})},
        )
        self.lake.point("main", TABLE, changed)
        return changed

    def _manifest(self, file: Path, of: str, rows: int, number: int, snapshot: int, *, by_value: bool) -> ManifestFile:
        schema, path = MANIFEST_ENTRY_SCHEMAS[3], self.folder / f"manifest-{number}.avro"
        content = DataFileContent.EQUALITY_DELETES if by_value else DataFileContent.POSITION_DELETES
        deletes = DataFile.from_args(
            _table_format_version=3, content=content, partition=Record(), file_path=str(file), record_count=rows,
            file_format=FileFormat.PARQUET, file_size_in_bytes=file.stat().st_size,
            referenced_data_file=None if by_value else of,
        )  # fmt: skip
        entry = ManifestEntry.from_args(
            _table_format_version=3, status=ManifestEntryStatus.ADDED, snapshot_id=snapshot, data_file=deletes
        )
        output = PyArrowFileIO().new_output(str(path))
        with AvroOutputFile[ManifestEntry](output, schema, "manifest_entry", record_schema=schema) as writer:
            writer.write_block([entry])
        zeros = ("existing_files_count", "deleted_files_count", "existing_rows_count", "deleted_rows_count")
        fields: dict[str, Any] = {
            "manifest_path": str(path),
            "manifest_length": path.stat().st_size,
            "partition_spec_id": 0,
            "sequence_number": number,
            "min_sequence_number": number,
            "added_snapshot_id": snapshot,
            "added_files_count": 1,
            "added_rows_count": rows,
            **dict.fromkeys(zeros, 0),
        }
        return ManifestFile.from_args(content=ManifestContent.DELETES, **fields)


@pytest.fixture
def marked(tmp_path: Path) -> Marked:
    return Marked(tmp_path)


def diff(queries: BlockingQueries, before: TableVersion, after: TableVersion) -> TableDiffResult:
    files = find_differing_files(before, after, {})
    table = DiffedTable(TableDiff(TABLE, before, after), files, queries.runner)
    result: TableDiffResult = queries.wait_for(table.compare(TableKey(columns=["id"], source="chosen"), 10, 60))
    return result


def test_rows_that_are_deleted_in_place_are_removed(marked: Marked, queries: BlockingQueries) -> None:
    before, path = marked.version, marked.data_file(with_id=3)
    after = marked.mark(path, [3, 4])
    result = diff(queries, before, after)
    expected = [{"id": 3, "v": 0}, {"id": 4, "v": 0}]
    assert result.rows == RowDifferences(removed=2, removed_rows=expected), result.problem
    assert (result.state, result.read.files, result.read.all_files) == ("changed", 1, 2)
    back = diff(queries, after, before)
    assert back.rows == RowDifferences(added=2, added_rows=expected)


def test_an_update_in_place_is_a_changed_row(marked: Marked, queries: BlockingQueries) -> None:
    first = marked.mark(marked.data_file(with_id=3), [3])
    second = marked.mark(marked.data_file(with_id=3), [3, 5])
    marked.lake.append_rows("main", TABLE, [{"id": 5, "v": 7}])
    result = diff(queries, first, marked.version)
    assert result.rows and (result.rows.added, result.rows.removed, result.rows.changed) == (0, 0, 1), result.problem
    assert result.rows.rewritten == 0, "the other rows of the file are in place"
    assert diff(queries, second, marked.version).rows == RowDifferences(added=1, added_rows=[{"id": 5, "v": 7}])


def test_deletes_by_value_are_not_compared(marked: Marked, queries: BlockingQueries) -> None:
    before = marked.version
    result = diff(queries, before, marked.mark(marked.data_file(with_id=3), [3], by_value=True))
    assert (result.state, result.rows, result.read.files) == ("not compared", None, 0)
    assert "deleted by value" in result.problem
