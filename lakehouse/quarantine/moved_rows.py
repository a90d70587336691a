"""Move rows from a table into its quarantine table without Spark: rewrite the data files that contain them.

Source of the rules: the Iceberg table specification, sections "Snapshots" and "Manifests". If the quarantine table
exists with other columns, Spark changes them.
"""

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io.pyarrow import _dataframe_to_data_files, schema_to_pyarrow
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import FileScanTask, StaticTable, Table
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import ListType, NestedField, StringType, TimestamptzType

from lakehouse.catalog import TableCommit
from lakehouse.iceberg.commit import BranchCommitCatalog, next_metadata_location, table_commit
from lakehouse.iceberg.file_rows import read_batches
from lakehouse.iceberg.table_state import TableState
from sluice.audit.engine_choice import DUCKDB_KINDS
from sluice.identifiers import name_elements
from sluice.pipeline.table_properties import DELETING_PROPERTIES
from sluice.publishing.bad_rows import BadRow
from sluice.publishing.quarantine_tables import AT, CHECKS, COMMENT, RUN
from sluice.sql.values import kind_of

_ADDED_TYPES = {CHECKS: "list<string>", RUN: "string", AT: "timestamptz"}
_FORMAT = 2
_MOST_MEMORY = 2**29
"""Maximum memory for the rows of one data file, in bytes."""


@dataclass(frozen=True)
class RowMove:
    """A move of rows, from one table into its quarantine table. Both are on the attempt's branch."""

    name: str
    table: TableState
    """The table, with its state before the run."""
    quarantine_name: str
    quarantine: TableState | None
    """The quarantine table; None if it does not exist yet."""

    @property
    def is_possible(self) -> bool:
        """True if the quarantine table can store the rows as they are, and all files of the run can be rewritten."""
        types, metadata = self.table.plain_types, self.table.table.metadata
        return (
            not {*types} & {*_ADDED_TYPES}
            and {kind_of(type) for type in types.values()} <= {*DUCKDB_KINDS}
            and metadata.format_version == _FORMAT
            and not self.table.row_deletes
            and {file.spec_id for file in self._files.values()} <= {metadata.default_spec_id}
            and self._can_store(self.quarantine)
        )

    def _can_store(self, quarantine: TableState | None) -> bool:
        if quarantine is None:  # Spark reads a fixed number of bytes as any number, and would create such a column
            return "fixed" not in {kind_of(type) for type in self.table.plain_types.values()}
        metadata = quarantine.table.metadata
        is_same = {**self.table.plain_types, **_ADDED_TYPES} == quarantine.plain_types
        return is_same and metadata.format_version == _FORMAT and metadata.spec().is_unpartitioned()

    @property
    def _files(self) -> dict[str, DataFile]:
        """The data files that the run added, by their path."""
        return {entry.data_file.file_path: entry.data_file for entry in self.table.live.added}

    def commits(
        self, bad_rows: Sequence[BadRow], run_id: str, at: datetime, marks: Mapping[str, str]
    ) -> list[TableCommit]:
        """Write the new files of both tables; return the commits for the branch.

        Args:
            at: the time to record with the rows.
            marks: the properties of the new snapshots, which name the attempt.

        Raises:
            TooManyRows: the rows of a data file need too much memory.
        """
        by_file: dict[str, dict[int, list[str]]] = {}
        for row in bad_rows:
            by_file.setdefault(row.file, {})[row.position] = row.checks
        files = self._files
        source, written = _writable(self.name, self.table.table)
        moved: list[pa.Table] = []
        with (
            source.transaction() as transaction,
            transaction.update_snapshot(snapshot_properties=dict(marks)).overwrite() as overwrite,
        ):
            for path, checks in by_file.items():
                rows = _rows(self.table.table, files[path])
                moved.append(_with_checks(rows, checks, run_id, at))
                overwrite.delete_data_file(files[path])
                if len(checks) == rows.num_rows:
                    continue
                staying = rows.filter(pa.array([position not in checks for position in range(rows.num_rows)]))
                # PyIceberg writes data files only as a part of an append, which would be a snapshot of its own.
                for file in _dataframe_to_data_files(source.metadata, staying, source.io):
                    overwrite.append_data_file(file)
        target, kept = _writable(self.quarantine_name, self.quarantine.table if self.quarantine else self._created())
        with target.transaction() as transaction:
            rows = _with_columns(pa.concat_tables(moved), target.schema())
            transaction.append(rows, snapshot_properties=dict(marks))
        return [table_commit(self.name, *written[-1]), table_commit(self.quarantine_name, *kept[-1])]

    def _created(self) -> StaticTable:
        """Write the metadata of an empty quarantine table. The commit points the branch to it."""
        columns = {field.name: field.field_type for field in self.table.table.schema().fields}
        checks = ListType(0, StringType(), element_required=False)
        types = {**columns, CHECKS: checks, RUN: StringType(), AT: TimestamptzType()}
        fields = [NestedField(0, name, type) for name, type in types.items()]
        parent = self.table.table.metadata.location.rsplit("/", 1)[0]
        name = re.sub(r"[^A-Za-z0-9_]", "_", name_elements(self.quarantine_name)[-1])
        metadata = new_table_metadata(
            assign_fresh_schema_ids(Schema(*fields)),
            UNPARTITIONED_PARTITION_SPEC,
            UNSORTED_SORT_ORDER,
            f"{parent}/{name}_{uuid.uuid4()}",  # a table of this name may have existed before
            {**dict.fromkeys(DELETING_PROPERTIES, "false"), "comment": COMMENT},
        )
        io, location = self.table.table.io, next_metadata_location(metadata, "")
        ToOutputFile.table_metadata(metadata, io.new_output(location))
        return StaticTable(("quarantine",), metadata, location, io, NoopCatalog("quarantine"))


def _with_columns(rows: pa.Table, schema: Schema) -> pa.Table:
    """Return rows with the columns of a quarantine table, in its order."""
    stored = schema_to_pyarrow(schema, include_field_ids=False)
    return rows.select(stored.names).cast(stored)


def _writable(name: str, table: StaticTable) -> tuple[Table, list[tuple[str, TableMetadata]]]:
    """Return a table that can be changed, and the list that gets each new metadata file with its content."""
    written: list[tuple[str, TableMetadata]] = []
    catalog = BranchCommitCatalog(lambda location, metadata: written.append((location, metadata)))
    return Table(("quarantine", *name.split(".")), table.metadata, table.metadata_location, table.io, catalog), written


def _rows(table: StaticTable, file: DataFile) -> pa.Table:
    """Return the rows of a data file, in their order."""
    batches = list(read_batches(table, table.schema(), [FileScanTask(file)], _MOST_MEMORY))
    rows = pa.Table.from_batches(batches)
    assert rows.num_rows == file.record_count, file.file_path
    return rows


def _with_checks(rows: pa.Table, checks: Mapping[int, list[str]], run_id: str, at: datetime) -> pa.Table:
    """Return the rows at some positions, with the columns of a quarantine table."""
    bad = rows.take(pa.array(list(checks)))
    bad = bad.append_column(CHECKS, pa.array(list(checks.values()), pa.list_(pa.string())))
    bad = bad.append_column(RUN, pa.array([run_id] * len(checks)))
    return bad.append_column(AT, pa.array([at] * len(checks), pa.timestamp("us", "UTC")))
