"""What Iceberg's metadata says of a table: exact where it says anything, silent where it does not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Literal

Scope = Literal["added", "table"]


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Statistics of one column in one data file. None means: not recorded, so nothing is proven."""

    nulls: int | None = None
    nans: int | None = None
    lower: Any = None
    """No value is below it. Not necessarily a value that occurs."""
    upper: Any = None
    """No value is above it."""
    size: int | None = None
    """In bytes, as stored."""


_SILENT = ColumnStatistics()


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """One data file: its rows and what is recorded of its columns, by name."""

    rows: int
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)
    path: str = ""
    bytes: int = 0
    form: str = "PARQUET"
    deletes: bool = False
    """Whether row-level deletes may apply: then every count is an upper bound."""

    def column(self, name: str) -> ColumnStatistics:
        """Return what is recorded of a column, which may be nothing."""
        return self.columns.get(name, _SILENT)

    def values(self, name: str) -> int | None:
        """Return how many values that are no nulls a column has, an upper bound under row-level deletes."""
        nulls = self.column(name).nulls
        return None if nulls is None else self.rows - nulls


@dataclass(frozen=True, slots=True)
class SchemaField:
    """A column of a schema, by the id that it keeps when it is renamed."""

    id: int
    name: str
    type: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class ChangeStatistics:
    """What a run did to a table, beyond its rows."""

    operations: Sequence[str] = ()
    added_rows: int = 0
    deleted_rows: int = 0
    """Rows of removed files, and rows deleted in place: a rewritten row counts."""
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
    """A table at one hash of a branch, compared with the hash that the branch began from."""

    types: Mapping[str, str]
    """The Iceberg type of each column, in the table's order."""
    added: Sequence[FileStatistics]
    """The files that this run's snapshots added and that are live."""
    live: Sequence[FileStatistics] = ()
    """Every live file; empty unless a check asks for the whole table."""
    change: ChangeStatistics = field(default_factory=ChangeStatistics)
    others: Mapping[str, int | None] = field(default_factory=dict)
    """The rows of other tables that checks name, by `name` or `name@main`; None where deletes hide it."""
    now: datetime = datetime(1970, 1, 1, tzinfo=timezone.utc)
    """When the audit began."""

    def files(self, scope: Scope) -> Sequence[FileStatistics]:
        """Return the files that a check of this scope is about."""
        return self.added if scope == "added" else self.live

    def rows(self, scope: Scope) -> int | None:
        """Return the exact number of rows, or None where row-level deletes hide it."""
        files = self.files(scope)
        return None if any(file.deletes for file in files) else sum(file.rows for file in files)

    def nulls(self, column: str, scope: Scope) -> int | None:
        """Return the exact number of nulls, or None."""
        found = [file.column(column).nulls for file in self.files(scope) if file.rows]
        if any(nulls is None for nulls in found) or self.rows(scope) is None:
            return None
        return sum(nulls or 0 for nulls in found)
