"""Move rows from a table into its quarantine table without Spark: rewrite the data files that contain them.

Source of the rules: the Iceberg table specification, sections "Snapshots" and "Manifests". The quarantine table must
exist with the same types: Spark creates it, and changes its columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
from pyiceberg.io.pyarrow import _dataframe_to_data_files, schema_to_pyarrow
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, StaticTable, Table
from pyiceberg.table.metadata import TableMetadata

from lakehouse.catalog import TableCommit
from lakehouse.iceberg.commit import BranchCommitCatalog, table_commit
from lakehouse.iceberg.file_rows import read_batches
from lakehouse.iceberg.table_state import TableState
from sluice.audit.engine_choice import DUCKDB_KINDS
from sluice.publishing.bad_rows import BadRow
from sluice.publishing.quarantine_tables import AT, CHECKS, RUN
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
    quarantine: TableState

    @property
    def is_possible(self) -> bool:
        """True if the quarantine table can store the rows as they are, and all files of the run can be rewritten."""
        table, quarantine = self.table.table.metadata, self.quarantine.table.metadata
        return (
            {**self.table.plain_types, **_ADDED_TYPES} == self.quarantine.plain_types
            and not {*self.table.plain_types} & {*_ADDED_TYPES}
            and {kind_of(type) for type in self.table.plain_types.values()} <= {*DUCKDB_KINDS}
            and table.format_version == quarantine.format_version == _FORMAT
            and quarantine.spec().is_unpartitioned()
            and not self.table.row_deletes
            and {file.spec_id for file in self._files.values()} <= {table.default_spec_id}
        )

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
        target, kept = _writable(self.quarantine_name, self.quarantine.table)
        with target.transaction() as transaction:
            transaction.append(self._stored(pa.concat_tables(moved)), snapshot_properties=dict(marks))
        return [table_commit(self.name, *written[-1]), table_commit(self.quarantine_name, *kept[-1])]

    def _stored(self, rows: pa.Table) -> pa.Table:
        """Return rows with the columns of the quarantine table, in its order."""
        schema = schema_to_pyarrow(self.quarantine.table.schema(), include_field_ids=False)
        return rows.select(schema.names).cast(schema)


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
