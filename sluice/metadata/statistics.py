"""Table statistics that Iceberg's metadata records. Recorded values are exact; None means not recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from typing import Any, Literal

Scope = Literal["added", "table"]


class StatisticsNeed(Enum):
    """Statistics that are collected only if a check needs them."""

    LIVE_FILES = "live files"
    """Every live data file of the table, not only the added ones."""
    CHANGE = "change"
    """The changes that the run made to the table: `TableStatistics.change`."""
    PARTITIONS = "partitions"
    """The changed partitions: `ChangeStatistics.partitions`."""
    VOLUMES = "volumes"
    """The rows of earlier publications: `ChangeStatistics.volumes`."""


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Statistics of one column in one data file. None means not recorded."""

    nulls: int | None = None
    nans: int | None = None
    lower: Any = None
    """A lower bound. The column may not contain the bound itself."""
    upper: Any = None
    """An upper bound. The column may not contain the bound itself."""
    size: int | None = None
    """Size as stored, in bytes."""


_NOT_RECORDED = ColumnStatistics()


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A file with the positions of deleted rows: position deletes in Parquet, or deletion vectors in Puffin."""

    path: str
    form: str
    rows: int
    """Number of deleted rows that the table's metadata records for it, over all data files."""
    vectors: int = 1
    """Number of its deletion vectors that are live."""


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """Statistics of one data file: its rows, its size, and its columns by name."""

    rows: int
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)
    path: str = ""
    bytes: int = 0
    form: str = "PARQUET"
    deletes: bool = False
    """True if row-level deletes may apply. Every count is then an upper bound."""
    delete_files: Sequence[DeleteFile] = ()
    """The files with all deletes that apply, if `deletes_problem` is empty."""
    deletes_problem: str = "row-level deletes apply"
    """The reason why it is not certain which rows are deleted, if deletes may apply."""
    may_lack_columns: bool = False
    """True if metadata does not show that the file contains the columns whose values its partition records."""

    def column(self, name: str) -> ColumnStatistics:
        """Return the statistics of a column; all None if the file has none for it."""
        return self.columns.get(name, _NOT_RECORDED)

    def values(self, name: str) -> int | None:
        """Return the number of non-null values in a column, an upper bound under row-level deletes."""
        nulls = self.column(name).nulls
        return None if nulls is None else self.rows - nulls


@dataclass(frozen=True, slots=True)
class SchemaField:
    """A column of a schema. Its id stays the same when it is renamed."""

    id: int
    name: str
    type: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class ChangeStatistics:
    """Changes of a table by a run, from its live files before and after and the operations of its snapshots."""

    operations: Sequence[str] = ()
    added_rows: int = 0
    deleted_rows: int = 0
    """Rows of removed files and rows deleted in place, rewritten ones too: at least the rows that were removed."""
    deletes_by_value: bool = False
    """True if equality deletes were added or removed. No metadata records the number of rows that they delete."""
    added_files: int = 0
    added_bytes: int = 0
    created: bool = False
    partitions: Sequence[str] = ()
    """Every partition with a file that was added, removed or had rows deleted, by its path as Iceberg writes it."""
    partition_spec: tuple[str, str] = ("", "")
    """The partition spec before and after."""
    sort_order: tuple[str, str] = ("", "")
    fields_before: Sequence[SchemaField] = ()
    fields_after: Sequence[SchemaField] = ()
    tables: Sequence[str] = ()
    """Every table that the branch changed."""
    volumes: Sequence[int] = ()
    """The rows that each earlier publication added, the newest first."""


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """Statistics of a table at one hash of a branch, compared with the base of the branch."""

    types: Mapping[str, str]
    """The Iceberg type of each column, in the table's order."""
    added: Sequence[FileStatistics]
    """The live files that this run's snapshots added."""
    live: Sequence[FileStatistics] = ()
    """Every live file; empty unless a check needs `LIVE_FILES`."""
    change: ChangeStatistics = field(default_factory=ChangeStatistics)
    referenced_rows: Mapping[str, int | None] = field(default_factory=dict)
    """The rows of other tables that checks reference, by `name` or `name@main`; None under row-level deletes."""
    now: datetime = datetime(1970, 1, 1, tzinfo=timezone.utc)
    """Start time of the audit."""
    requeued: bool = False
    """True if the run requeues rows. It then adds a few rows of earlier batches, and no batch of its own."""

    def files(self, scope: Scope) -> Sequence[FileStatistics]:
        """Return the files of a scope."""
        return self.added if scope == "added" else self.live

    def rows(self, scope: Scope) -> int | None:
        """Return the exact number of rows, or None under row-level deletes."""
        files = self.files(scope)
        return None if any(file.deletes for file in files) else sum(file.rows for file in files)

    def nulls(self, column: str, scope: Scope) -> int | None:
        """Return the exact number of nulls, or None if it is not recorded."""
        counts = [file.column(column).nulls for file in self.files(scope) if file.rows]
        if any(nulls is None for nulls in counts) or self.rows(scope) is None:
            return None
        return sum(nulls or 0 for nulls in counts)
