"""Messages of a diff: the question, the rows that differ in one table, and the answer for all tables."""

from typing import Any, Literal

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.contracts.lake_query import LakeQueryMessage

KeySource = Literal["chosen", "merge keys", "unique check", "none"]
MAX_ROWS = 1000
"""Maximum number of sample rows of each kind for each table."""


class TableKey(WireMessage):
    """Columns that identify a row of a table, and where they come from."""

    columns: list[str] = Field(default_factory=list)
    source: KeySource = "none"


class DiffTablesInput(LakeQueryMessage):
    """Input of `diff_tables`: compare the rows of tables at two hashes."""

    kind: Literal["diff_tables"] = "diff_tables"
    what: str
    """Branch, run id, workflow id, pipeline, or commit on main.

    A branch is compared with its base, a commit on main with main before it.
    """
    other: str = ""
    """Second commit on main, run or pipeline. Main after `what` is then compared with main after this one."""
    head: str = ""
    """Hash of the branch to compare; empty means its head, or for a quarantine the hash that it keeps."""
    table: str = ""
    """The only table to compare; empty means every table that differs."""
    key: list[str] = Field(default_factory=list)
    """Key columns that a person chose; empty means those of `known_keys`."""
    known_keys: dict[str, TableKey] = Field(default_factory=dict)
    """Keys that the pipeline of the run states, by table."""
    rows: int = Field(default=10, ge=0, le=MAX_ROWS)
    """Maximum number of sample rows of each kind for each table."""


class DiffSide(WireMessage):
    """One of the two states that are compared."""

    branch: str
    hash: str
    description: str
    """Name of the state for people, such as `main before the run`."""
    run_id: str = ""
    """Run that made the state; empty if it is not known."""
    workflow_id: str = ""


class SchemaChange(WireMessage):
    """Change of one column, which its field id identifies."""

    field_id: int
    change: Literal["added", "dropped", "renamed", "type changed", "nullability changed"]
    column: str
    """Its name after the change, or its last name if it was dropped. A nested column has its full path."""
    before: str = ""
    """The name, type or nullability before; empty if the column was added."""
    after: str = ""
    """The name, type or nullability after; empty if the column was dropped."""


class ColumnChanges(WireMessage):
    """Number of changed cells of one column."""

    column: str
    cells: int


class PartitionChanges(WireMessage):
    """Numbers of rows that differ in one partition."""

    partition: str
    """The partition as Iceberg writes its path, `month=1`. A changed row counts in the partition of its new version."""
    added: int = 0
    removed: int = 0
    changed: int = 0


class ChangedCell(WireMessage):
    """A value of a changed row, before and after the change."""

    before: Any = None
    after: Any = None


class ChangedRow(WireMessage):
    """A row whose key both versions have, with the cells that differ."""

    key: dict[str, Any]
    cells: dict[str, ChangedCell]


class RowDifferences(WireMessage):
    """Rows that differ between two versions of a table. All numbers are exact."""

    added: int = 0
    removed: int = 0
    changed: int = 0
    """Rows with a key of both versions and another value in some column; 0 if no key is known."""
    rewritten: int = 0
    """Rows that the read files of both versions contain unchanged."""
    compared_by_value: int = 0
    """Rows, of both versions, compared as a whole although a key is known: the key is null or occurs repeatedly."""
    null_keys: int = 0
    """Rows, of both versions, with a null in the key."""
    repeated_keys: int = 0
    """Keys that occur more than once in the read files of a version."""
    columns: list[ColumnChanges] = Field(default_factory=list)
    """Columns by their number of changed cells, most first."""
    more_columns: int = 0
    """Number of changed columns that are not listed."""
    partitions: list[PartitionChanges] = Field(default_factory=list)
    """Partitions by their number of differing rows, most first; none if the table has no partitions."""
    more_partitions: int = 0
    """Number of partitions with differing rows that are not listed."""
    added_rows: list[dict[str, Any]] = Field(default_factory=list)
    """Some of the added rows, with long values shortened."""
    removed_rows: list[dict[str, Any]] = Field(default_factory=list)
    changed_rows: list[ChangedRow] = Field(default_factory=list)

    @property
    def total(self) -> int:
        """Number of rows that differ."""
        return self.added + self.removed + self.changed


class FilesRead(WireMessage):
    """Number and size of the data files that were read, and of all data files of both versions."""

    files: int = 0
    bytes: int = 0
    """Size of the read files, in bytes."""
    all_files: int = 0
    all_bytes: int | None = None
    """Size of all files, in bytes; None if metadata does not record it."""


TableDiffState = Literal["created", "dropped", "changed", "schema only", "unchanged", "not compared"]


class TableDiffResult(WireMessage):
    """The diff of one table."""

    table: str
    state: TableDiffState
    """`unchanged` means that only files, properties or the layout changed, as by a compaction."""
    snapshot_before: int | None = None
    snapshot_after: int | None = None
    key: TableKey = TableKey()
    notes: list[str] = Field(default_factory=list)
    """Sentences for people about the comparison: no key is known, or a key is not unique."""
    problem: str = ""
    """Reason why the rows were not compared."""
    rows: RowDifferences | None = None
    """None if the rows were not compared."""
    schema_changes: list[SchemaChange] = Field(default_factory=list)
    more_schema_changes: int = 0
    """Number of schema changes that are not listed."""
    read: FilesRead = FilesRead()


class DiffTablesResult(WireMessage):
    """The diff of two states, table by table."""

    before: DiffSide
    after: DiffSide
    tables: list[TableDiffResult]
    moved: list[str] = Field(default_factory=list)
    """Tables of the diff that main changed after the base of the branch."""
    left_out: list[str] = Field(default_factory=list)
    """Tables that differ and were not compared, because there are too many."""
