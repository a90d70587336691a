"""What the commit log records of a version of a table, and what tells two versions apart."""

import hashlib
import json

from pyiceberg.table.metadata import TableMetadata

from lakehouse.catalog import TableCommit, TableVersion
from lakehouse.iceberg_catalog.log_commits import MAIN, LoggedVersion
from lakehouse.iceberg_catalog.tables import CatalogTables
from lakehouse.iceberg_catalog.transactions import CatalogTable
from sluice.pipeline.table_properties import DELETING_PROPERTIES


def shared_properties(metadata: TableMetadata) -> dict[str, str]:
    """Return the properties of a table, but for those by which jobs are shown that they may not delete files."""
    shown = dict.fromkeys(DELETING_PROPERTIES, "false").items()
    return dict(metadata.properties.items() - shown)


def layout_of(metadata: TableMetadata) -> str:
    """Return a digest of what readers see of a table beside its rows: columns, partitions, order, and properties."""
    seen = {
        "schema": metadata.schema().model_dump_json(),
        "spec": metadata.spec().model_dump_json(),
        "order": metadata.sort_order().model_dump_json(),
        "properties": dict(sorted(shared_properties(metadata).items())),
        "location": metadata.location,
    }
    return hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()[:16]


def logged_version(metadata: TableMetadata, location: str, snapshot_id: int | None) -> LoggedVersion | None:
    """Return the version that a snapshot of a table is; None without a snapshot, which counts as no table."""
    if snapshot_id is None:
        return None
    return LoggedVersion(
        uuid=str(metadata.table_uuid), layout=layout_of(metadata), snapshot_id=snapshot_id, location=location
    )


def version_on_main(table: CatalogTable | None) -> LoggedVersion | None:
    """Return the version of a table that readers see; None where there is no table, or no snapshot on its main."""
    return logged_version(table.metadata, table.location, table.ref(MAIN)) if table else None


def in_newest_file(version: LoggedVersion, table: CatalogTable | None) -> LoggedVersion:
    """Return a version in the metadata file that the catalog points to, if readers see the same there.

    An older file may be deleted; and a job that began from it would give numbers to columns and snapshots that the
    table has given since.
    """
    newest = version_on_main(table)
    return newest if newest and version.is_same(newest) else version


def committed_version(tables: CatalogTables, commit: TableCommit) -> LoggedVersion | None:
    """Return the version that a commit makes of a table, from the metadata file that it names."""
    if commit.version is None:
        return None
    location = commit.version.metadata_location
    return logged_version(tables.read_metadata(location), location, commit.version.snapshot_id)


def table_version(version: LoggedVersion | None) -> TableVersion | None:
    """Return a version as the port has it."""
    if version is None:
        return None
    return TableVersion(version.location, version.snapshot_id, f"{version.uuid}/{version.layout}")
