"""Table statistics that Iceberg's metadata records. What is recorded is exact; None means not recorded."""

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
    """What the run did to the table: `TableStatistics.change`."""
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
    """No value is below it. The value itself may not occur."""
    upper: Any = None
    """No value is above it. The value itself may not occur."""
    size: int | None = None
    """In bytes, as stored."""


_NOT_RECORDED = ColumnStatistics()


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A file of positions of deleted rows: position deletes in Parquet, or deletion vectors in Puffin."""

    path: str
    form: str
    rows: int
    """The deleted rows that the table's metadata records for it, over all data files."""
    vectors: int = 1
    """How many of its deletion vectors are live."""


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """Statistics of one data file: its rows, its size, and its columns by name."""

    rows: int
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)
    path: str = ""
    bytes: int = 0
    form: str = "PARQUET"
    deletes: bool = False
    """Whether row-level deletes may apply: then every count is an upper bound."""
    delete_files: Sequence[DeleteFile] = ()
    """Those with all deletes that apply, if `deletes_problem` is empty."""
    deletes_problem: str = "row-level deletes apply"
    """Why it is not certain which rows are deleted, if deletes may apply."""
    may_lack_columns: bool = False
    """Whether metadata does not show that it holds the columns that its partition has the values of."""

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
    """What a run did to a table: its live files before and after, compared, and the operations of its snapshots."""

    operations: Sequence[str] = ()
    added_rows: int = 0
    deleted_rows: int = 0
    """Rows of removed files, and rows deleted in place: a rewritten row counts. Never less than were removed."""
    deletes_by_value: bool = False
    """Whether equality deletes came or went: how many rows they delete is in no metadata."""
    added_files: int = 0
    added_bytes: int = 0
    created: bool = False
    partitions: Sequence[str] = ()
    """Every partition with an added, removed or deleted-from file, as Iceberg writes its path."""
    partition_spec: tuple[str, str] = ("", "")
    """Before and after."""
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
    """When the audit began."""
    requeued: bool = False
    """Whether the run requeues rows: those that it adds are a few of earlier batches, and no batch of their own."""

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
