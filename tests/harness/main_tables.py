"""Real Iceberg tables on the main of a catalog in memory, written by PyIceberg, for tests that read only metadata."""

import uuid
from pathlib import Path

from pyiceberg.io import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import DecimalType, ListType, LongType, MapType, NestedField, StringType, StructType

from lakehouse.catalog import TableCommit, TableVersion
from tests.harness.memory_catalog import MemoryCatalog

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True, doc="which one"),
    NestedField(2, "price", DecimalType(9, 2)),
    NestedField(3, "tags", ListType(4, StringType())),
    NestedField(5, "place", StructType(NestedField(6, "city", StringType()))),
    NestedField(7, "extra", MapType(8, StringType(), 9, LongType())),
)


class MainTables:
    """Tables on main; each `publish` writes a metadata file and points main at it."""

    def __init__(self, folder: Path) -> None:
        self.catalog, self.folder = MemoryCatalog(), folder
        self.catalog.initialize_main()
        self._metadata: dict[str, TableMetadata] = {}
        self._numbers: dict[str, int] = {}

    def publish(self, name: str, *, new: bool = False) -> str:
        """Publish a version of a table, or of a new table of the name; return its metadata location."""
        if new or name not in self._metadata:
            where = f"file://{self.folder}/{name}-{uuid.uuid4().hex[:8]}"
            self._metadata[name] = new_table_metadata(
                SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, where, {}
            )
        number = self._numbers[name] = self._numbers.get(name, 0) + 1
        metadata = self._metadata[name].model_copy(update={"properties": {"version": str(number)}})
        location = f"{metadata.location}/metadata/{number:05}-{uuid.uuid4()}.metadata.json"
        ToOutputFile.table_metadata(metadata, load_file_io({}, location).new_output(location))
        self.point(name, location)
        return location

    def point(self, name: str, location: str) -> None:
        """Point a table of main at a metadata location."""
        self._commit(TableCommit(name, TableVersion(location, None)))

    def drop(self, name: str) -> None:
        """Drop a table from main."""
        self._commit(TableCommit(name, None))

    def _commit(self, change: TableCommit) -> None:
        main = self.catalog.main
        self.catalog.commit_tables(main, self.catalog.head(main), "publish", [change])
