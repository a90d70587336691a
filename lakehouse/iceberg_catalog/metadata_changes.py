"""Changes that bring a table of the catalog to a branch's version, as updates of Iceberg's REST protocol."""

from collections.abc import Mapping
from typing import Any

from pyiceberg.io import load_file_io
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AddSortOrderUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePropertiesUpdate,
    RemoveSnapshotRefUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetPropertiesUpdate,
    TableUpdate,
    UpgradeFormatVersionUpdate,
)

from lakehouse.iceberg.commit import next_metadata_location
from lakehouse.iceberg_catalog.log_commits import MAIN
from lakehouse.iceberg_catalog.sequence_numbers import renumbered
from lakehouse.iceberg_catalog.transactions import CatalogTable, CommitConflict, TableChange, set_branch
from sluice.pipeline.table_properties import DELETING_PROPERTIES

Io = Mapping[str, Any]
CREATED = "sluice.created"
"""Property of a table that was created for a future publish. The publish removes it."""


def move_main(
    table: CatalogTable, expected: int | None, target: TableMetadata | None, snapshot: int | None, io: Io
) -> TableChange:
    """Return the change that brings main of a table to the version in another metadata file of it.

    Args:
        expected: the snapshot at which main must be; None for none.
        target: the metadata with the new snapshot, columns and properties; None removes main.
        snapshot: the new snapshot of main.
        io: Iceberg's properties for file access.

    Raises:
        CommitConflict: the table's metadata was changed meanwhile, apart from its rows.
    """
    requirements = (
        AssertTableUUID(uuid=table.metadata.table_uuid),
        AssertRefSnapshotId(ref=MAIN, snapshot_id=expected),
    )
    if target is None or snapshot is None:
        return TableChange(table, requirements, (RemoveSnapshotRefUpdate(ref_name=MAIN),))
    updates = [*_layout_updates(table, target), *_new_snapshots(table, target, snapshot, io)]
    updates.append(set_branch(MAIN, snapshot, table.metadata.refs.get(MAIN)))
    return TableChange(table, requirements, tuple(updates))


def write_without_snapshots(metadata: TableMetadata, io: Io) -> str:
    """Write the metadata of a table without its snapshots; return the file, which a catalog can register."""
    empty: dict[str, Any] = {
        "snapshots": [],
        "refs": {},
        "current_snapshot_id": None,
        "snapshot_log": [],
        "metadata_log": [],
        "last_sequence_number": 0,
        "properties": {**metadata.properties, CREATED: "true"},
    }
    created = metadata.model_copy(update=empty)
    location = next_metadata_location(created, "")
    ToOutputFile.table_metadata(created, load_file_io(dict(io), location).new_output(location))
    return location


def _layout_updates(table: CatalogTable, target: TableMetadata) -> list[TableUpdate]:
    """Return the updates that bring columns, partitions, order and properties of a table to those of a target."""
    present = table.metadata
    updates: list[TableUpdate] = []
    if target.format_version > present.format_version:
        updates.append(UpgradeFormatVersionUpdate(format_version=target.format_version))
    schemas, wanted_schemas = ({each.schema_id: each for each in one.schemas} for one in (present, target))
    for schema in _added(table, "schema", schemas, wanted_schemas):
        updates.append(AddSchemaUpdate(schema_=schema))
    if target.current_schema_id != present.current_schema_id:
        updates.append(SetCurrentSchemaUpdate(schema_id=target.current_schema_id))
    for spec in _added(table, "partition spec", present.specs(), target.specs()):
        updates.append(AddPartitionSpecUpdate(spec=spec))
    if target.default_spec_id != present.default_spec_id:
        updates.append(SetDefaultSpecUpdate(spec_id=target.default_spec_id))
    orders, wanted = ({o.order_id: o for o in each.sort_orders} for each in (present, target))
    for order in _added(table, "sort order", orders, wanted):
        updates.append(AddSortOrderUpdate(sort_order=order))
    if target.default_sort_order_id != present.default_sort_order_id:
        updates.append(SetDefaultSortOrderUpdate(sort_order_id=target.default_sort_order_id))
    # A job sees properties that forbid it to delete files, even if the table does not have them. They are not
    # published.
    shown = {(key, "false") for key in DELETING_PROPERTIES if key not in present.properties}
    changed = dict(target.properties.items() - present.properties.items() - shown)
    if changed:
        updates.append(SetPropertiesUpdate(updates=changed))
    removed = [key for key in present.properties if key not in target.properties and key not in DELETING_PROPERTIES]
    if removed:
        updates.append(RemovePropertiesUpdate(removals=removed))
    return updates


def _added(table: CatalogTable, what: str, present: Mapping[int, Any], target: Mapping[int, Any]) -> list[Any]:
    """Return the items of a target that a table lacks, by Iceberg's numbers.

    Raises:
        CommitConflict: another item got the same number meanwhile.
    """
    if differing := [number for number in present.keys() & target.keys() if present[number] != target[number]]:
        raise CommitConflict(f"{table.name} got another {what} {differing[0]} meanwhile")
    return [target[number] for number in sorted(target.keys() - present.keys())]


def _new_snapshots(table: CatalogTable, target: TableMetadata, snapshot_id: int, io: Io) -> list[TableUpdate]:
    """Return the updates that add a snapshot and its missing ancestors to a table, oldest first."""
    missing: list[Snapshot] = []
    wanted: int | None = snapshot_id
    while wanted is not None and table.metadata.snapshot_by_id(wanted) is None:
        snapshot = target.snapshot_by_id(wanted)
        if snapshot is None:
            break
        missing.insert(0, snapshot)
        wanted = snapshot.parent_snapshot_id
    return [AddSnapshotUpdate(snapshot=each) for each in renumbered(table, missing, io)]
