"""Changes of a run to its tables, counted in rows and files."""

from typing import Literal

from pydantic import Field

from sluice.base_model import WireMessage


class RowNumbers(WireMessage):
    """Numbers of rows that a run inserted, updated, removed, replaced, and rewrote unchanged."""

    inserted: int = 0
    updated: int = 0
    removed: int = 0
    replaced: int = 0
    """Rows that the inserted ones replace as a whole."""
    rewritten: int = 0
    """Rows that new files contain unchanged, because another row of the old file changed."""


class RowCounts(RowNumbers):
    """Numbers of rows by their change, in files that a run rewrote or replaced."""

    known_by: Literal["replacement", "keys of the input", "deletes in place", "deletes alone", "rows compared"]
    """Source of the numbers. Iceberg's metadata counts only the rows of files."""


class TableChange(WireMessage):
    """Changes of a run to one table, from a comparison of its live files before and after."""

    operation: str
    """Operation in Iceberg's terms: append, overwrite, delete, replace; joined by '+' if there are several."""
    added_rows: int = 0
    deleted_rows: int = 0
    """Rows of removed files, and rows deleted in place. Rewritten rows count, so it may exceed the removed rows."""
    deletes_by_value: bool = False
    """True if the run wrote equality deletes. No metadata has the number of rows that those delete."""
    rows: RowCounts | None = None
    """Numbers of rows by their change, if the run removed or rewrote some; None if not, or if they are not known."""
    added_files: int = 0
    removed_files: int = 0
    added_bytes: int = 0
    distribution: str = ""
    """Spark's distribution of rows that are written to the table: none, hash (by partition) or range (sorted)."""
    total_rows: int | None = None
    """Number of rows of the table after the run; None if row-level deletes hide it."""
    created: bool = False
    hint: str = ""
    """Hint on better partitions, if the present ones split a write into many small files; otherwise empty."""


class ChangeSummary(WireMessage):
    """Totals over the tables that a run changes, without quarantine tables."""

    tables: int
    added: int = 0
    updated: int = 0
    replaced: int = 0
    """Rows that added ones replace as a whole."""
    removed: int = 0
    quarantined: int = 0
    """Bad rows that went to quarantine tables."""
    left_quarantine: int = 0
    """Rows that left quarantine tables."""
    new_tables: list[str] = Field(default_factory=list)
    dropped_tables: list[str] = Field(default_factory=list)
    restored_tables: list[str] = Field(default_factory=list)
    """Tables of a roll-back. For these, the totals contain only the difference in rows."""
    uncounted_tables: list[str] = Field(default_factory=list)
    """Tables whose rows the totals leave out, because the number of changed rows is not known."""
