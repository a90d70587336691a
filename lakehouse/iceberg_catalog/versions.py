"""Versions of tables as the commit log records and compares them."""

import hashlib
import json

from pyiceberg.table.metadata import TableMetadata

from lakehouse.catalog import TableCommit, TableVersion
from lakehouse.iceberg_catalog.log_commits import MAIN, LoggedVersion
from lakehouse.iceberg_catalog.tables import CatalogTables
from lakehouse.iceberg_catalog.transactions import CatalogTable
from sluice.pipeline.table_properties import DELETING_PROPERTIES


def shared_properties(metadata: TableMetadata) -> dict[str, str]:
    """Return the properties of a table, except those that forbid jobs to delete files."""
    shown = dict.fromkeys(DELETING_PROPERTIES, "false").items()
    return dict(metadata.properties.items() - shown)


def layout_of(metadata: TableMetadata) -> str:
    """Return a digest of a table without its rows: columns, partitions, order, properties and location."""
    seen = {
        "schema": metadata.schema().model_dump_json(),
        "spec": metadata.spec().model_dump_json(),
        "order": metadata.sort_order().model_dump_json(),
        "properties": dict(sorted(shared_properties(metadata).items())),
        "location": metadata.location,
    }
    return hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()[:16]


def logged_version(metadata: TableMetadata, location: str, snapshot_id: int | None) -> LoggedVersion | None:
    """Return the version of a table at a snapshot; None without a snapshot, which counts as no table."""
    if snapshot_id is None:
        return None
    return LoggedVersion(
        uuid=str(metadata.table_uuid), layout=layout_of(metadata), snapshot_id=snapshot_id, location=location
    )


def version_on_main(table: CatalogTable | None) -> LoggedVersion | None:
    """Return the version of a table that readers see; None without a table, or without a snapshot on its main."""
    return logged_version(table.metadata, table.location, table.ref(MAIN)) if table else None


def in_newest_file(version: LoggedVersion, table: CatalogTable | None) -> LoggedVersion:
    """Return a version with the metadata file that the catalog points to, if readers see the same in it.

    An older file may be deleted. A job that began from it would also reuse numbers of columns and snapshots that the
    table assigned since.
    """
    newest = version_on_main(table)
    return newest if newest and version.is_same(newest) else version


def committed_version(tables: CatalogTables, commit: TableCommit) -> LoggedVersion | None:
    """Return the version of a table that a commit creates, read from the metadata file that it names."""
    if commit.version is None:
        return None
    location = commit.version.metadata_location
    return logged_version(tables.read_metadata(location), location, commit.version.snapshot_id)


def table_version(version: LoggedVersion | None) -> TableVersion | None:
    """Return a version as a value of the port."""
    if version is None:
        return None
    return TableVersion(version.location, version.snapshot_id, f"{version.uuid}/{version.layout}")
