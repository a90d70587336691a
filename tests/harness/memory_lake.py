"""Iceberg tables in a folder, on the branches of a catalog in memory: runs without a server and without Spark."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.io import load_file_io
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField

from lakehouse.catalog import BranchCatalog, TableCommit, TableVersion
from lakehouse.iceberg.commit import BranchCommitCatalog, next_metadata_location, table_commit
from lakehouse.iceberg.table_state import load_table
from lakehouse.input.loaded_files import LoadedFiles
from lakehouse.input.manifests import InputManifests
from sluice.contracts.references import RunRef
from sluice.publishing.branch_properties import marks


class MemoryLake:
    """A writer of tables with integer columns, `id` by default, which commits as the job of an attempt would."""

    def __init__(self, catalog: BranchCatalog, folder: Path, columns: Sequence[str] = ("id",)) -> None:
        self.catalog, self._folder = catalog, folder
        fields = [NestedField(number, name, LongType()) for number, name in enumerate(columns, start=1)]
        self._schema = assign_fresh_schema_ids(Schema(*fields))
        self.arrow_schema = self._schema.as_arrow()
        self.manifests = InputManifests((folder / "lake").as_uri(), {})
        self.loaded_files = LoadedFiles(catalog, self.manifests, folder / "home")

    def with_catalog(self, catalog: BranchCatalog) -> "MemoryLake":
        """Return this lake with another catalog of its tables, such as one that publishes to a branch of a backfill."""
        other = copy(self)
        other.catalog, other.loaded_files = catalog, LoadedFiles(catalog, self.manifests, self._folder / "home")
        return other

    def append(self, branch: str, name: str, ids: Sequence[int], run_ref: RunRef | None = None) -> None:
        """Append rows to a table on a branch, with the marks of an attempt if given. Create the table if need be."""
        self.append_rows(branch, name, [{"id": each} for each in ids], run_ref)

    def append_rows(
        self, branch: str, name: str, rows: Sequence[Mapping[str, int]], run_ref: RunRef | None = None
    ) -> None:
        """Append rows of any columns, as `append` does."""
        self._writable(branch, name).append(self._arrow(rows), snapshot_properties=_marks(run_ref))

    def replace_rows(
        self, branch: str, name: str, rows: Sequence[Mapping[str, int]], run_ref: RunRef | None = None
    ) -> None:
        """Replace all rows of a table on a branch."""
        self._writable(branch, name).overwrite(self._arrow(rows), snapshot_properties=_marks(run_ref))

    def replace_partitions(
        self, branch: str, name: str, rows: Sequence[Mapping[str, int]], run_ref: RunRef | None = None
    ) -> None:
        """Replace the partitions of a table on a branch that the given rows belong to."""
        table = self._writable(branch, name)
        table.dynamic_partition_overwrite(self._arrow(rows), snapshot_properties=_marks(run_ref))

    def create_table(self, branch: str, name: str, partition_by: Sequence[str] = ()) -> None:
        """Create a table on a branch, partitioned by the values of columns, unless it exists."""
        if self.catalog.table_version(branch, name) is None:
            version = self._create(name, partition_by)
            self.catalog.commit_tables(branch, self.catalog.head(branch), "create", [TableCommit(name, version)])

    def recreate(self, name: str) -> None:
        """Drop a table of main and create it again, empty, as another program does."""
        main = self.catalog.main
        self.catalog.commit_tables(main, self.catalog.head(main), "drop", [TableCommit(name, None)])
        self.create_table(main, name)

    def change(self, branch: str, name: str, change: Callable[[Table], Any]) -> None:
        """Change a table on a branch by PyIceberg, creating it if need be. Each of its commits is one of the branch."""
        change(self._writable(branch, name))

    def point(self, branch: str, name: str, version: TableVersion) -> None:
        """Set a table on a branch to a version, whatever wrote it."""
        self.catalog.commit_tables(branch, self.catalog.head(branch), "point", [TableCommit(name, version)])

    def rewrite(self, version: TableVersion, **changes: Any) -> TableVersion:
        """Write a copy of a version's metadata file with these fields changed; return its version."""
        metadata = load_table(version, {}).metadata.model_copy(update=changes)
        location = next_metadata_location(metadata, version.metadata_location)
        ToOutputFile.table_metadata(metadata, load_file_io({}, location).new_output(location))
        return TableVersion(location, metadata.current_snapshot_id)

    def ids(self, name: str, branch: str = "") -> list[int]:
        """Return the ids in a table on a branch, by default on main."""
        version = self.catalog.table_version(branch or self.catalog.main, name)
        assert version, f"there is no table {name}"
        return sorted(load_table(version, {}).scan().to_arrow()["id"].to_pylist())

    def rows(self, name: str, branch: str = "") -> list[dict[str, int]]:
        """Return the rows of a table on a branch, by default on main. Return none if it does not exist."""
        version = self.catalog.table_version(branch or self.catalog.main, name)
        rows: list[dict[str, int]] = load_table(version, {}).scan().to_arrow().to_pylist() if version else []
        return rows

    def _arrow(self, rows: Sequence[Mapping[str, int]]) -> pa.Table:
        return pa.Table.from_pylist([dict(row) for row in rows], schema=self.arrow_schema)

    def _writable(self, branch: str, name: str) -> Table:
        """Return a table that commits to a branch."""
        version = self.catalog.table_version(branch, name) or self._create(name)
        table = load_table(version, {})

        def commit(location: str, metadata: TableMetadata) -> None:
            head = self.catalog.head(branch)
            self.catalog.commit_tables(branch, head, "write", [table_commit(name, location, metadata)])

        return Table(
            tuple(name.split(".")), table.metadata, version.metadata_location, table.io, BranchCommitCatalog(commit)
        )

    def _create(self, name: str, partition_by: Sequence[str] = ()) -> TableVersion:
        location = (self._folder / name).as_uri()
        columns = [self._schema.find_field(column) for column in partition_by]
        spec = PartitionSpec(
            *(
                PartitionField(column.field_id, PARTITION_FIELD_ID_START + number, IdentityTransform(), column.name)
                for number, column in enumerate(columns)
            )
        )
        metadata = new_table_metadata(self._schema, spec, UNSORTED_SORT_ORDER, location)
        path = next_metadata_location(metadata, "")
        ToOutputFile.table_metadata(metadata, load_file_io({}, location).new_output(path))
        return TableVersion(path, None)


def _marks(run_ref: RunRef | None) -> dict[str, str]:
    return marks(run_ref) if run_ref else {}
