"""Versions of tables for tests to commit: plain paths, or real metadata files with snapshots."""

import uuid
from pathlib import Path

from pyiceberg.io import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import LongType, NestedField

from lakehouse.catalog import TableVersion
from lakehouse.iceberg.commit import BranchCommitCatalog, next_metadata_location
from lakehouse.iceberg_catalog.versions import layout_of
from sluice.publishing.commit_properties import RUN_ID

_NUMBERS = 5
"""Number of versions of each table."""


class PathVersions:
    """Versions without files, for catalogs that never read the metadata file."""

    def version(self, table: str, number: int) -> TableVersion:
        """Return a version of a table."""
        return TableVersion(f"file:///lake/{table}/{number:05}.metadata.json", number)

    def in_the_same_file(self, table: str) -> TableVersion:
        """Return a version with another snapshot in the metadata file of version 1."""
        return TableVersion(self.version(table, 1).metadata_location, 7)

    def of_another_table(self, table: str) -> TableVersion:
        """Return a version of another table of this name."""
        return self.version(f"{table}-again", 1)


class SnapshotVersions:
    """Versions with real snapshots, each the child of the one before, in metadata files of one table."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._versions: dict[str, list[TableVersion]] = {}

    def version(self, table: str, number: int) -> TableVersion:
        """Return a version of a table."""
        if table not in self._versions:
            self._versions[table] = self._make(table)
        return self._versions[table][number]

    def in_the_same_file(self, table: str) -> TableVersion:
        """Return a version with another snapshot in the metadata file of version 1."""
        first, second = self.version(table, 1), self.version(table, 2)
        return TableVersion(first.metadata_location, second.snapshot_id, first.identity)

    def of_another_table(self, table: str) -> TableVersion:
        """Return a version of another table of this name."""
        return self._make(table)[1]

    def _make(self, name: str) -> list[TableVersion]:
        """Write the metadata files. The file of each version has all snapshots so far."""
        folder = f"file://{self._folder}/{name.replace('.', '/')}-{uuid.uuid4().hex[:6]}"
        io = load_file_io({}, folder)
        schema = Schema(NestedField(1, "id", LongType()))
        metadata = new_table_metadata(schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, folder)
        location = next_metadata_location(metadata, "")
        ToOutputFile.table_metadata(metadata, io.new_output(location))
        written: list[TableMetadata] = []
        marks = {RUN_ID: "r"}  # marks of a run: after a roll-back, another table may get the name
        for _ in range(_NUMBERS):
            catalog = BranchCommitCatalog(lambda _, made: written.append(made))
            table = Table(tuple(name.split(".")), metadata, location, io, catalog)
            with table.transaction() as transaction, transaction.update_snapshot(marks).fast_append():
                pass
            metadata = written[-1]
            location = next_metadata_location(metadata, location)
        ToOutputFile.table_metadata(metadata, io.new_output(location))
        ids = [snapshot.snapshot_id for snapshot in metadata.snapshots]
        identity = f"{metadata.table_uuid}/{layout_of(metadata)}"
        return [TableVersion(location, snapshot_id, identity) for snapshot_id in [None, *ids]]
