"""Read entries of delete manifests, with the data file of each delete file as far as metadata records it.

PyIceberg reads manifests with the struct of format version 2. That struct lacks the fields that distinguish the
deletion vectors of one Puffin file. This module reads with the struct of version 3. Source of the rules: the Iceberg
table specification, sections "Data File Fields" (ids 143 and 144), "Manifest Inheritance" and "Position Delete Files".
"""

from typing import Any

from pyiceberg.avro.file import AvroFile
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)

_VERSION = 3
_NAMES = [each.name for each in DATA_FILE_TYPE[_VERSION].fields]
_REFERENCED, _OFFSET = _NAMES.index("referenced_data_file"), _NAMES.index("content_offset")
_PATH = 2147483546
"""Field id of `file_path` in position delete files. A truncated bound is a prefix, or rounded up."""


def live_entries(manifest: ManifestFile, io: FileIO) -> list[ManifestEntry]:
    """Return the live entries of a manifest of data files or delete files."""
    if manifest.content == ManifestContent.DATA:
        return manifest.fetch_manifest_entry(io, discard_deleted=True)
    with AvroFile[ManifestEntry](
        io.new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[_VERSION],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as entries:
        return [_inherited(each, manifest) for each in entries if each.status != ManifestEntryStatus.DELETED]


def _inherited(entry: ManifestEntry, manifest: ManifestFile) -> ManifestEntry:
    """Set the fields that an entry inherits from its manifest."""
    if entry.snapshot_id is None and manifest.added_snapshot_id is not None:
        entry.snapshot_id = manifest.added_snapshot_id
    if entry.sequence_number is None and entry.status == ManifestEntryStatus.ADDED:
        entry.sequence_number = manifest.sequence_number
    entry.data_file.spec_id = manifest.partition_spec_id
    return entry


def content_offset(file: DataFile) -> int | None:
    """Return the offset of a deletion vector in its Puffin file; None for other files."""
    offset: int | None = _field(file, _OFFSET)
    return offset


def path_bounds(file: DataFile) -> tuple[bytes | None, bytes | None]:
    """Return the lowest and highest path of the data files that a delete file names; None if not recorded.

    They are equal if the delete file names only one data file.
    """
    referenced: str | None = _field(file, _REFERENCED)
    if referenced is not None:
        return referenced.encode(), referenced.encode()
    return (file.lower_bounds or {}).get(_PATH), (file.upper_bounds or {}).get(_PATH)


def only_path(file: DataFile) -> str:
    """Return the only data file that a delete file names; empty if there may be several."""
    lower, upper = path_bounds(file)
    return lower.decode() if lower and lower == upper else ""


def _field(file: DataFile, position: int) -> Any:
    return file[position] if len(file) > position else None
