"""The catalog that a Spark job sees: a JDBC catalog in a file of the job, with every table as on a branch.

A job may do anything there: replace a table, change its columns, drop it, name another branch. The catalog of other
readers does not change, and the job needs no access to it. When the job has ended, the worker reads its changes from
the file. Data and metadata files are written to the folders of the tables, so that nothing is copied.
"""

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import load_file_io
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef

from sluice.identifiers import joined_name, name_elements, namespaces_of
from sluice.pipeline.table_properties import DELETING_PROPERTIES

_FILE = "catalog-{}.db"
_EXISTS = ("exists", "true")
"""Property that records a namespace in a JDBC catalog."""


@dataclass(frozen=True)
class ShownTable:
    """A table as a job sees it."""

    name: str
    snapshot_id: int
    metadata: TableMetadata


def write_job_catalog(
    folder: Path, name: str, tables: Iterable[ShownTable], namespaces: Collection[str], io: Mapping[str, Any]
) -> None:
    """Write the catalog into a folder.

    Args:
        name: its name in Spark.
        namespaces: namespaces that exist without a table.
        io: Iceberg's properties for file access.
    """
    file = catalog_file(folder, name)
    file.unlink(missing_ok=True)
    SqlCatalog(name, uri=f"sqlite:///{file}", warehouse=folder.as_uri()).close()  # creates the tables of the catalog
    rows, needed = [], set(namespaces)
    for number, table in enumerate(tables):
        *namespace, last = name_elements(table.name)
        rows.append((name, ".".join(namespace), last, _location(folder, number, table, io), "TABLE"))
        needed |= {joined_name(each) for each in namespaces_of(table.name)}
    with sqlite3.connect(file) as database:
        columns = "catalog_name, table_namespace, table_name, metadata_location, iceberg_type"
        database.executemany(f"INSERT INTO iceberg_tables ({columns}) VALUES (?, ?, ?, ?, ?)", rows)
        columns = "catalog_name, namespace, property_key, property_value"
        created = [(name, ".".join(name_elements(each)), *_EXISTS) for each in sorted(needed)]
        database.executemany(f"INSERT INTO iceberg_namespace_properties ({columns}) VALUES (?, ?, ?, ?)", created)
    database.close()


def read_job_catalog(folder: Path, name: str) -> tuple[dict[str, str], set[str]] | None:
    """Return each table's metadata file and the namespaces in a job's catalog; None if there is no catalog."""
    file = catalog_file(folder, name)
    if not file.exists():
        return None
    database = sqlite3.connect(file)
    try:
        query = "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables WHERE catalog_name = ?"
        tables = {
            joined_name((*namespace.split("."), table)): location
            for namespace, table, location in database.execute(query, (name,))
            if location
        }
        query = "SELECT DISTINCT namespace FROM iceberg_namespace_properties WHERE catalog_name = ?"
        namespaces = {joined_name(row[0].split(".")) for row in database.execute(query, (name,))}
    finally:
        database.close()
    return tables, namespaces


def job_catalog_properties(folder: Path, name: str, warehouse: str) -> dict[str, str]:
    """Return the properties for Spark to open the catalog of a job."""
    return {
        "": "org.apache.iceberg.spark.SparkCatalog",
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{catalog_file(folder, name)}?busy_timeout=60000",
        "jdbc.schema-version": "V1",
        "warehouse": warehouse,
    }


def catalog_file(folder: Path, name: str) -> Path:
    """Return the file of a job's catalog."""
    return folder / _FILE.format(name)


def _location(folder: Path, number: int, table: ShownTable, io: Mapping[str, Any]) -> str:
    """Write a metadata file whose main branch is at the snapshot that the job sees; return its address.

    Its properties refuse statements that delete files (expire_snapshots, remove_orphan_files, DROP TABLE ... PURGE). It
    lists no earlier metadata file that a commit could delete. Other branches need all these files.
    """
    main = SnapshotRef.model_validate({"snapshot-id": table.snapshot_id, "type": "branch"})
    shown = table.metadata.model_copy(
        update={
            "current_snapshot_id": table.snapshot_id,
            "refs": {**table.metadata.refs, MAIN_BRANCH: main},
            "metadata_log": [],
            "properties": {**dict.fromkeys(DELETING_PROPERTIES, "false"), **table.metadata.properties},
        }
    )
    location = (folder / f"{number:05}-shown.metadata.json").as_uri()
    ToOutputFile.table_metadata(shown, load_file_io(dict(io), location).new_output(location), overwrite=True)
    return location
