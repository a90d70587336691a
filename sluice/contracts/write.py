"""Inputs and results of the activities that write an attempt and verify the write."""

from typing import Literal

from pydantic import Field

from sluice.base_model import Model
from sluice.contracts.guessed_types import NO_TYPES, GuessedTypes
from sluice.contracts.input import ManifestRef
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.references import BranchRef, BranchRequest, LineageParent, RunRef
from sluice.pipeline.scope import NO_SCOPE, LoadScope
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write


class OpenBranchInput(BranchRequest):
    """Input of `open_branch`: create the branch of one attempt."""

    run_ref: RunRef
    tables: dict[str, Table]
    schema_is_fixed: bool
    """Whether the write cannot add columns, so that checks of existing tables can be held to theirs."""
    input_digest: str
    again: bool
    """Whether the whole input may be one that was published before: it may, too, where its files are known singly."""
    tables_made_safe: list[str] = Field(default_factory=list)
    """The tables whose unsafe properties the write itself changes, so that they may be there on main."""
    after_publish: list[str] = Field(default_factory=list)
    """The targets at which the publication is to be registered."""
    write: Write | None = None
    """What the run writes; None in histories from before it was part of this."""
    order: LoadOrder = LoadOrder()
    """How old the rows of the run are."""
    attempts: int = 1  # how often the write may be tried
    allow_partial: bool = False
    """Whether several tables may be published one by one, where the catalog cannot commit them together."""
    catalog_id: str | None = None  # the catalog that earlier attempts of this run saw, if any


class WriteTableInput(Model):
    """Input of `write_table`: run one Spark job on one branch."""

    run_ref: RunRef
    branch: str
    write: Write
    tables: dict[str, Table]
    input_digest: str
    scope: LoadScope = NO_SCOPE
    """The partition and the scheduled time that the files are loaded for."""
    manifest: ManifestRef | None = None
    """The files to load, where there are any."""
    sorted_tables: list[str] = Field(default_factory=list)
    """The tables of which Spark sorts what is written to them, over all tasks."""
    runs_apart: bool = False
    """Whether the job gets a Spark of its own, because a server that the run's jobs shared with others crashed."""
    show_values: bool = False
    """Whether messages may quote values of rows."""
    lineage_parent: LineageParent | None = None
    """The OpenLineage run that started the run, if it is known."""
    folder: str = ""
    """Where the run was started: a program of the user's runs there, if the worker has that folder."""


class JobReport(Model):
    """What the write job reports. It is compared with the branch, and never trusted alone."""

    rows_read: int | None = None
    rows_written: int | None = None
    rows_merged: int | None = None
    """The rows that a merge was given, each with keys of its own."""
    types: GuessedTypes = NO_TYPES
    """The types of the columns that neither the pipeline nor the table types."""
    log: str = ""
    """Where the whole log of the attempt lies, on the worker's machine."""


class VerifyWriteInput(Model):
    """Input of `verify_write`: read back from the branch what an attempt did to it."""

    run_ref: RunRef
    branch: BranchRef
    write: Write
    tables: list[str]
    job: JobReport
    since: str = ""
    """The hash of the branch after which all snapshots must be of this attempt; empty means its base."""
    quarantined_rows: dict[str, int] = Field(default_factory=dict)
    """By table, how many of its rows were moved to its quarantine table since the hash `since`."""
    repairs: bool = False
    """True if SQL repaired quarantined rows since the hash `since`. The changed rows are counted then."""


class RowNumbers(Model):
    """How many rows a run inserted, updated, removed, replaced, and rewrote unchanged."""

    inserted: int = 0
    updated: int = 0
    removed: int = 0
    replaced: int = 0
    """Rows that the inserted ones take the place of, as a whole."""
    rewritten: int = 0
    """Rows that new files hold unchanged, because a row beside them in the old file changed."""


class RowCounts(RowNumbers):
    """What became of the rows of files that a run rewrote or replaced."""

    known_by: Literal["replacement", "keys of the input", "deletes in place", "deletes alone", "rows compared"]
    """How they are known: Iceberg's metadata counts the rows of files only."""


class TableChange(Model):
    """What a run did to one table: its live files before and after, compared."""

    operation: str
    """Iceberg's name of it: append, overwrite, delete, replace; joined by '+' where there are several."""
    added_rows: int = 0
    deleted_rows: int = 0
    """Rows of removed files, and rows deleted in place: a rewritten row counts. Never less than were removed."""
    deletes_by_value: bool = False
    """Whether it wrote equality deletes: how many rows those delete is in no metadata."""
    rows: RowCounts | None = None
    """What became of rows, where the run removed or rewrote some; None if it did not, or if it is not known."""
    added_files: int = 0
    removed_files: int = 0
    added_bytes: int = 0
    distribution: str = ""
    """How Spark spreads rows that are written to the table: none, hash (by partition) or range (sorted)."""
    total_rows: int | None = None
    """The rows of the table after the run, or None where row-level deletes hide it."""
    created: bool = False
    hint: str = ""
    """What would make the table better to read, if anything: partitions that split a write into many small files."""


class ChangeSummary(Model):
    """The totals over the tables that a run changes, without quarantine tables."""

    tables: int
    added: int = 0
    updated: int = 0
    replaced: int = 0
    """Rows that added ones take the place of, as a whole."""
    removed: int = 0
    quarantined: int = 0
    """Bad rows that went to quarantine tables."""
    left_quarantine: int = 0
    """Rows that left quarantine tables."""
    new_tables: list[str] = Field(default_factory=list)
    dropped_tables: list[str] = Field(default_factory=list)
    restored_tables: list[str] = Field(default_factory=list)
    """Tables of a roll-back, of which the totals have the difference in rows alone."""
    uncounted_tables: list[str] = Field(default_factory=list)
    """Tables whose rows the totals leave out, because it is not known how many of them changed."""


class TableVersionRef(Model):
    """One version of a table: a metadata file and a snapshot."""

    metadata_location: str
    snapshot_id: int | None = None
    identity: str = ""
    """What readers see beside the snapshot, where several metadata files show the same; else empty."""


class ChangedTable(Model):
    """The versions of a table before and after an attempt: they can be read when the branch is gone."""

    before: TableVersionRef | None = None
    """None where there was no such table."""
    after: TableVersionRef | None = None
    """None where the table was dropped."""


class WriteResult(Model):
    """A verified write: complete on the branch, and by this attempt alone."""

    head: str
    """The hash of the branch that holds exactly the write."""
    tables: dict[str, TableChange]
    versions: dict[str, ChangedTable] = Field(default_factory=dict)
    """By table, what it was at the base of the branch and what it is at the head."""
    conflicts: list[str] = Field(default_factory=list)
    """The tables that main changed meanwhile too, so that a merge now would fail."""
    repaired: dict[str, RowNumbers] = Field(default_factory=dict)
    """By table, the rows that the SQL of a repair changed, where they could be compared."""
