"""Delete files are distinguished and counted by all fields of their manifest entries."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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
)

from lakehouse.iceberg.delete_manifests import live_entries
from lakehouse.iceberg.live_files import LiveFileDiff, live_file_diff

PUFFIN, PATH = "/deletes.puffin", 2147483546


def deletes(path: str, rows: int, status: ManifestEntryStatus = ManifestEntryStatus.ADDED, **more: Any) -> Any:
    """Return an entry of a delete file, or of one deletion vector in it."""
    form = FileFormat.PUFFIN if path.endswith("puffin") else FileFormat.PARQUET
    fields = {"file_path": path, "file_format": form, "record_count": rows, "file_size_in_bytes": 9, **more}
    content = DataFileContent.POSITION_DELETES
    file = DataFile.from_args(_table_format_version=3, content=content, partition=None, **fields)
    return ManifestEntry.from_args(_table_format_version=3, status=status, data_file=file)


def vector(of: str, offset: int, rows: int = 1, puffin: str = PUFFIN, **more: Any) -> Any:
    return deletes(puffin, rows, referenced_data_file=of, content_offset=offset, content_size_in_bytes=9, **more)


def manifest(path: Path, entries: Sequence[Any]) -> ManifestFile:
    """Write a manifest of delete files as Spark writes them for format version 3."""
    schema = MANIFEST_ENTRY_SCHEMAS[3]
    output = PyArrowFileIO().new_output(str(path))
    with AvroOutputFile[ManifestEntry](output, schema, "manifest_entry", record_schema=schema) as writer:
        writer.write_block(list(entries))
    fields: dict[str, Any] = {
        "manifest_path": str(path),
        "partition_spec_id": 4,
        "sequence_number": 7,
        "added_snapshot_id": 8,
    }
    return ManifestFile.from_args(content=ManifestContent.DELETES, **fields)


def table(*manifests: ManifestFile) -> Any:
    snapshot = SimpleNamespace(manifests=lambda _: manifests)
    return SimpleNamespace(io=PyArrowFileIO(), current_snapshot=lambda: snapshot)


@pytest.fixture
def diff(tmp_path: Path) -> Any:
    def compare(before: Sequence[Any], after: Sequence[Any]) -> LiveFileDiff:
        return live_file_diff(table(manifest(tmp_path / "a", before)), table(manifest(tmp_path / "b", after)))

    return compare


def test_an_entry_inherits_of_its_manifest_and_a_removed_one_is_left_out(tmp_path: Path) -> None:
    deleted = vector("/b", 40, status=ManifestEntryStatus.DELETED)
    (entry,) = live_entries(manifest(tmp_path / "m", [vector("/a", 4), deleted]), PyArrowFileIO())
    assert (entry.sequence_number, entry.snapshot_id, entry.data_file.spec_id) == (7, 8, 4)


def test_each_deletion_vector_of_one_puffin_file_is_counted(diff: Any) -> None:
    """Vectors have no bounds: three vectors of one row each differ only in their position and their data file."""
    made = diff([], [vector("/a", 4), vector("/b", 40), vector("/c", 80)])
    assert (made.deleted_rows, made.marked_files) == (3, {"/a", "/b", "/c"})


def test_a_vector_that_replaces_another_repeats_its_deletes(diff: Any) -> None:
    replaced = diff([vector("/a", 4), vector("/b", 40)], [vector("/b", 40), vector("/a", 4, 3, "/later.puffin")])
    assert (replaced.deleted_rows, replaced.marked_files) == (2, {"/a"})
    assert [entry.data_file.file_path for entry in replaced.removed_deletes] == [PUFFIN]


def test_position_deletes_are_of_the_file_that_they_name_or_that_their_bounds_name(diff: Any) -> None:
    bounds: dict[str, Any] = {"lower_bounds": {PATH: b"/b"}, "upper_bounds": {PATH: b"/b"}}
    several: dict[str, Any] = {"lower_bounds": {PATH: b"/b"}, "upper_bounds": {PATH: b"/c"}}
    named = deletes("/1.parquet", 1, referenced_data_file="/a")
    made = diff([], [named, deletes("/2.parquet", 2, **bounds), deletes("/3.parquet", 4, **several)])
    assert (made.deleted_rows, made.marked_files) == (7, {"/a", "/b"})
