"""Assign a table's next sequence numbers to snapshots whose own numbers other branches used meanwhile.

The manifest list of a snapshot contains its number too, and data and delete files inherit it from there. Numbers decide
which deletes apply to which files, so they may only shift together. Source: the Iceberg table specification, sections
"Sequence Numbers" and "Sequence Number Inheritance".
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from pyiceberg.avro.codecs import AvroCompressionCodec
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.manifest import ManifestContent, ManifestFile, read_manifest_list, write_manifest_list
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot

from lakehouse.iceberg_catalog.transactions import CatalogTable, last_sequence_number
from sluice.errors import CatalogRefused

_CODEC: AvroCompressionCodec = "deflate"


def renumbered(table: CatalogTable, snapshots: Sequence[Snapshot], io: Mapping[str, Any]) -> list[Snapshot]:
    """Return new snapshots, oldest first, with numbers above all numbers of the table.

    Raises:
        CatalogRefused: their files carry explicit numbers, which decide which deletes apply.
    """
    last = last_sequence_number(table.metadata)
    first = snapshots[0].sequence_number or 0 if snapshots else 0
    if not snapshots or table.metadata.format_version == 1 or first > last:
        return list(snapshots)
    shift, new = last + 1 - first, {snapshot.snapshot_id for snapshot in snapshots}
    files = load_file_io(dict(io), table.location)
    lists = [list(read_manifest_list(files.new_input(snapshot.manifest_list))) for snapshot in snapshots]
    if table.metadata.format_version > 2 or not all(_may_move(each, new, lists[-1], snapshots) for each in lists):
        raise CatalogRefused(
            f"{table.name} got newer rows on another of its branches, and the files of this run cannot be added "
            "after them: run the pipeline again"
        )
    pairs = zip(snapshots, lists, strict=True)
    return [_moved(snapshot, manifests, shift, new, table.metadata, files) for snapshot, manifests in pairs]


def _may_move(
    manifests: Sequence[ManifestFile], new: set[int], last: Sequence[ManifestFile], snapshots: Sequence[Snapshot]
) -> bool:
    """Return True if there are no deletes to apply, or if all files of the run get their numbers from its manifests.

    Snapshots that replace files, and new manifests with existing files, keep older numbers.
    """
    if not any(each.content == ManifestContent.DELETES for each in last):
        return True
    replaced = any(each.summary is not None and each.summary.operation == Operation.REPLACE for each in snapshots)
    added = [each for each in manifests if each.added_snapshot_id in new]
    return not replaced and not any(each.existing_files_count for each in added)


def _moved(
    snapshot: Snapshot,
    manifests: Sequence[ManifestFile],
    shift: int,
    new: set[int],
    metadata: TableMetadata,
    io: FileIO,
) -> Snapshot:
    number = (snapshot.sequence_number or 0) + shift
    for each in manifests:
        if each.added_snapshot_id in new:
            each.sequence_number += shift
            each.min_sequence_number = each.min_sequence_number if each.existing_files_count else each.sequence_number
    location = f"{metadata.location}/metadata/snap-{snapshot.snapshot_id}-{uuid.uuid4()}.avro"
    output, parent = io.new_output(location), snapshot.parent_snapshot_id
    with write_manifest_list(2, output, snapshot.snapshot_id, parent, number, _CODEC) as writer:
        writer.add_manifests(list(manifests))
    return snapshot.model_copy(update={"sequence_number": number, "manifest_list": location})
