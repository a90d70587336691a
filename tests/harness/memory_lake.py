"""Iceberg tables in a folder, on the branches of a catalog in memory: runs without a server and without Spark."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyiceberg.io import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import LongType, NestedField

from lakehouse.catalog import BranchCatalog, TableVersion
from lakehouse.iceberg.commit import BranchCommitCatalog, next_metadata_location, table_commit
from lakehouse.iceberg.table_state import load_table
from sluice.contracts.references import RunRef
from sluice.publishing.certificate import marks

_SCHEMA = assign_fresh_schema_ids(Schema(NestedField(1, "id", LongType())))


class MemoryLake:
    """Writes tables of one column `id`, as the job of an attempt would."""

    def __init__(self, catalog: BranchCatalog, folder: Path) -> None:
        self.catalog, self._folder = catalog, folder

    def append(self, branch: str, name: str, ids: Sequence[int], run_ref: RunRef | None = None) -> None:
        """Append rows to a table on a branch, creating it if need be, with the marks of an attempt if one is given."""
        version = self.catalog.table_version(branch, name) or self._create(name)
        table = load_table(version, {})

        def commit(location: str, metadata: TableMetadata) -> None:
            head = self.catalog.head(branch)
            self.catalog.commit_tables(branch, head, "append", [table_commit(name, location, metadata)])

        writable = Table(
            tuple(name.split(".")), table.metadata, version.metadata_location, table.io, BranchCommitCatalog(commit)
        )
        properties: Mapping[str, str] = marks(run_ref) if run_ref else {}
        rows = pa.Table.from_pylist([{"id": each} for each in ids], schema=_SCHEMA.as_arrow())
        writable.append(rows, snapshot_properties=dict(properties))

    def ids(self, name: str, branch: str = "") -> list[int]:
        """Return the ids that a table holds on a branch, on main by default."""
        version = self.catalog.table_version(branch or self.catalog.main, name)
        assert version, f"there is no table {name}"
        return sorted(load_table(version, {}).scan().to_arrow()["id"].to_pylist())

    def _create(self, name: str) -> TableVersion:
        location = (self._folder / name).as_uri()
        metadata = new_table_metadata(_SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, location)
        path = next_metadata_location(metadata, "")
        ToOutputFile.table_metadata(metadata, load_file_io({}, location).new_output(path))
        return TableVersion(path, None)
