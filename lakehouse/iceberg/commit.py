"""Letting PyIceberg change a table whose pointer lies on a Nessie branch."""

from collections.abc import Callable

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata

Move = Callable[[str, TableMetadata], None]
"""Takes the place of a new metadata file and what it says, and moves the table's pointer to it, or notes it."""


class BranchCommitCatalog(NoopCatalog):
    """Writes each new metadata file, and leaves it to `move` what becomes of it."""

    def __init__(self, move: Move) -> None:
        super().__init__("branch")
        self._move = move

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Write the new metadata file and hand it on."""
        for requirement in requirements:
            requirement.validate(table.metadata)
        metadata = update_table_metadata(table.metadata, updates, metadata_location=table.metadata_location)
        place = next_metadata_location(metadata, table.metadata_location)
        ToOutputFile.table_metadata(metadata, table.io.new_output(place))
        self._move(place, metadata)
        return CommitTableResponse(metadata=metadata, metadata_location=place)


def next_metadata_location(metadata: TableMetadata, before: str) -> str:
    """Return where the metadata file that follows the one at `before`, if there is one, is to lie."""
    version = int(before.rsplit("/", 1)[-1].split("-", 1)[0]) + 1 if before else 0
    provider = load_location_provider(metadata.location, metadata.properties)
    return str(provider.new_table_metadata_file_location(version))
