"""PyIceberg commits to a table that a branch of the catalog points to."""

from collections.abc import Callable

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import FileIO
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata

from lakehouse.catalog import TableCommit, TableVersion

CommitMetadata = Callable[[str, TableMetadata], None]
"""Function that takes the path and content of a new metadata file, and points the table to it or records it."""


class BranchCommitCatalog(NoopCatalog):
    """PyIceberg catalog that writes each new metadata file and passes it to `commit`."""

    def __init__(self, commit: CommitMetadata) -> None:
        super().__init__("branch")
        self._commit = commit

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Write the new metadata file and pass it to `commit`."""
        for requirement in requirements:
            requirement.validate(table.metadata)
        metadata = update_table_metadata(table.metadata, updates, metadata_location=table.metadata_location)
        location = next_metadata_location(metadata, table.metadata_location)
        ToOutputFile.table_metadata(metadata, table.io.new_output(location))
        self._commit(location, metadata)
        return CommitTableResponse(metadata=metadata, metadata_location=location)

    @staticmethod
    def _delete_old_metadata(io: FileIO, base: TableMetadata, metadata: TableMetadata) -> None:
        """Delete nothing, whatever the table's properties say: main or another branch may need earlier metadata."""


def table_commit(name: str, location: str, metadata: TableMetadata) -> TableCommit:
    """Return the commit that points a branch to a metadata file and its current snapshot."""
    return TableCommit(
        name,
        TableVersion(location, metadata.current_snapshot_id),
        schema_id=metadata.current_schema_id,
        spec_id=metadata.default_spec_id,
        sort_order_id=metadata.default_sort_order_id,
    )


def next_metadata_location(metadata: TableMetadata, before: str) -> str:
    """Return the path of the metadata file that follows the one at `before`; an empty `before` means the first file."""
    version = int(before.rsplit("/", 1)[-1].split("-", 1)[0]) + 1 if before else 0
    provider = load_location_provider(metadata.location, metadata.properties)
    return str(provider.new_table_metadata_file_location(version))
