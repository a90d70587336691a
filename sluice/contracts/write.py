"""Inputs and results of the activities that write an attempt and verify the write."""

from typing import Literal

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.contracts.guessed_types import NO_TYPES, GuessedTypes
from sluice.contracts.input import ManifestRef
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.references import BranchMessage, BranchRequest, CatalogIdMessage, LineageParent, RunRef
from sluice.pipeline.scope import NO_SCOPE, LoadScope
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write


class OpenBranchInput(BranchRequest, CatalogIdMessage):
    """Input of `open_branch`: create the branch of one attempt."""

    run_ref: RunRef
    tables: dict[str, Table]
    schema_is_fixed: bool
    """True if the write cannot add columns. Checks of existing tables may then use only the present columns."""
    input_digest: str
    again: bool
    """True if the input as a whole may have been published before. It always may if its files are known one by one."""
    tables_made_safe: list[str] = Field(default_factory=list)
    """Tables whose unsafe properties the write itself changes, so that main may have these properties."""
    after_publish: list[str] = Field(default_factory=list)
    """Targets at which the publication is to be registered."""
    write: Write | None = None
    """Write of the run; None in histories from before this field existed."""
    order: LoadOrder = LoadOrder()
    """Age of the rows of the run."""
    attempts: int = 1  # the maximum number of tries of the write
    allow_partial: bool = False
    """True if several tables may be published one by one when the catalog cannot commit them together."""


class WriteTableInput(WireMessage):
    """Input of `write_table`: run one Spark job on one branch."""

    run_ref: RunRef
    branch: str
    write: Write
    tables: dict[str, Table]
    input_digest: str
    scope: LoadScope = NO_SCOPE
    """Partition and scheduled time that the files are loaded for."""
    manifest: ManifestRef | None = None
    """Manifest of the files to load, if there are any."""
    sorted_tables: list[str] = Field(default_factory=list)
    """Tables for which Spark sorts the written rows over all tasks."""
    runs_apart: bool = False
    """True if the job gets a Spark of its own, because a server that the run's jobs shared with others crashed."""
    show_values: bool = False
    """True if messages may quote values of rows."""
    lineage_parent: LineageParent | None = None
    """OpenLineage run that started the run, if it is known."""
    folder: str = ""
    """Folder in which the run was started. A user's program runs there, if the worker has that folder."""


class JobReport(WireMessage):
    """Report of the write job. It is compared with the branch, and never trusted alone."""

    rows_read: int | None = None
    rows_written: int | None = None
    rows_merged: int | None = None
    """Number of rows that a merge received, each with keys of its own."""
    types: GuessedTypes = NO_TYPES
    """Types of the columns for which neither the pipeline nor the table states a type."""
    log: str = ""
    """Location of the complete log of the attempt, on the worker's machine."""


class VerifyWriteInput(BranchMessage):
    """Input of `verify_write`: read the changes of an attempt back from its branch."""

    run_ref: RunRef
    write: Write
    tables: list[str]
    job: JobReport
    since: str = ""
    """Hash of the branch after which all snapshots must be of this attempt; empty means the base of the branch."""
    quarantined_rows: dict[str, int] = Field(default_factory=dict)
    """Number of rows that were moved to the quarantine table since the hash `since`, by table."""
    repairs: bool = False
    """True if SQL repaired quarantined rows since the hash `since`. The changed rows are then counted."""


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


class TableVersionRef(WireMessage):
    """One version of a table: a metadata file and a snapshot."""

    metadata_location: str
    snapshot_id: int | None = None
    identity: str = ""
    """Identity of what readers see besides the snapshot, if several metadata files show the same; otherwise empty."""


class ChangedTable(WireMessage):
    """Versions of a table before and after an attempt. They can be read even after the branch is deleted."""

    before: TableVersionRef | None = None
    """Version before; None if there was no such table."""
    after: TableVersionRef | None = None
    """Version after; None if the table was dropped."""


class WriteResult(WireMessage):
    """A verified write: complete on the branch, and made by this attempt alone."""

    head: str
    """Hash of the branch that contains exactly the write."""
    tables: dict[str, TableChange]
    versions: dict[str, ChangedTable] = Field(default_factory=dict)
    """Versions of each table at the base and at the head of the branch, by table."""
    conflicts: list[str] = Field(default_factory=list)
    """Tables that main changed meanwhile, too, so that a merge would fail now."""
    repaired: dict[str, RowNumbers] = Field(default_factory=dict)
    """Number of rows that the SQL of a repair changed, by table, if they could be compared."""
