"""Inputs and results of the activities that write an attempt and verify the write."""

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.contracts.guessed_types import NO_TYPES, GuessedTypes
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.references import BranchMessage, BranchRequest, CatalogIdMessage, LineageParent, RunRef
from sluice.contracts.selected_input import ManifestRef
from sluice.contracts.table_changes import RowNumbers, TableChange
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
    """True if the input as a whole may have been published before. Always true if its files are known one by one."""
    tables_made_safe: list[str] = Field(default_factory=list)
    """Tables whose unsafe properties the write itself changes, so that main may have these properties."""
    after_publish: list[str] = Field(default_factory=list)
    """Targets at which the publication is to be registered."""
    write: Write | None = None
    """Write of the run; None in histories from before this field existed."""
    order: LoadOrder = LoadOrder()
    """Age of the rows of the run."""
    scope: LoadScope = NO_SCOPE
    """Partition and scheduled time that the run loads."""
    pipeline_digest: str = ""
    """Digest of the pipeline; empty in histories from before this field existed."""
    attempts: int = 1  # the maximum number of tries of the write
    publish: bool = True
    """True if the run publishes data that passes the audit; also in histories from before this field existed."""
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
    over_younger: bool = False
    """True if its rows may replace those of a later scheduled time."""


class TableVersionRef(WireMessage):
    """One version of a table: a metadata file and a snapshot."""

    metadata_location: str
    snapshot_id: int | None = None
    identity: str = ""
    """Identity of the version for readers, in addition to the snapshot, if several metadata files show the same;
    otherwise empty."""


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
