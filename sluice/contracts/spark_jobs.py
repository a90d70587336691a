"""What the built-in Spark jobs are told and what they answer, as files beside their log."""

from typing import Any, Literal

from pydantic import Field

from sluice.base_model import Model
from sluice.checks.base import CheckQuery
from sluice.contracts.guessed_types import NO_TYPES, GuessedTypes
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write


class ColumnGroup(Model):
    """Parquet files in which each column has one type, or none."""

    files: list[str]
    untyped: list[str]
    """The columns that hold nothing but NULL in these files and state no type."""


class NanosecondColumn(Model):
    """A column of Parquet files with times in nanoseconds."""

    name: str
    is_utc: bool
    """True for points in time, False for local times without a zone."""


class IngestSpec(Model):
    """What `spark_jobs/ingest.py` writes."""

    spark_catalog: str
    write: Write
    files: list[str] = Field(default_factory=list)
    bytes: int = 0
    """How much the files hold."""
    rows: int | None = None
    """How many rows must be read, counted before and without Spark; None where that is not known."""
    spans_lines: bool = False
    """Whether a value of a CSV file holds a line break."""
    one_value: list[str] = Field(default_factory=list)
    """The JSON files that are one array or object, and not one value in each line."""
    rounded: dict[str, str] = Field(default_factory=dict)
    """By JSON file that is one value, the first number that a DOUBLE would round."""
    column_groups: list[ColumnGroup] = Field(default_factory=list)
    """All files, where columns of Parquet files have different types in them, or none; empty where they do not."""
    nanoseconds: list[NanosecondColumn] = Field(default_factory=list)
    is_sorted: bool = False
    """Whether the table is there and Spark sorts what is written to it, for which it samples the rows first."""
    base_path: str | None = None
    tables: dict[str, Table]
    answer: str
    """Where the job leaves its `JobAnswer`, sealed."""
    answer_key: str = ""
    """The key that seals the answer: only the worker and this job know it."""
    show_values: bool = False
    """Whether messages may quote values of rows."""


class ConnectJobSpec(Model):
    """What `spark_jobs/connect_client.py` runs, and in which session."""

    url: str
    """The Spark Connect server, as `sc://HOST:PORT`."""
    session: str
    """The id of the job's own session, a UUID."""
    earlier_sessions: list[str] = Field(default_factory=list)
    """Sessions of earlier tries, which are released before this one begins."""
    tag: str = "sluice"
    """The tag by which the operations of the session can be interrupted."""
    built_in: bool = True
    """Whether it is one of Sluice's jobs, which imports Sluice's modules."""
    python_paths: list[str] = Field(default_factory=list)
    """More folders in which a user's program finds modules."""
    program: str = ""
    """Empty if the session is to be released instead."""
    args: list[str] = Field(default_factory=list)
    conf: dict[str, str] = Field(default_factory=dict)
    """Spark configuration of the pipeline."""
    session_conf: dict[str, str] = Field(default_factory=dict)
    """Configuration that the pipeline cannot change: the branch, the run and attempt of its snapshots."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Environment variables that the pipeline gives to its program."""
    shared_views: str = ""
    """The database of temporary views that all sessions of the server share; empty if it is not this worker's."""
    working_directory: str = ""
    released_file: str = ""
    """The file that the client creates when it has released the session."""


class ComparedRows(Model):
    """Files whose rows are compared, because a merge copied unchanged rows into the files that it added."""

    added: list[str]
    main_hash: str
    """The hash of main at which the removed files are live."""
    removed: list[str]


class View(Model):
    """Rows of a table under the name by which queries read them."""

    name: str
    table: str
    main_hash: str = ""
    """Read main at this hash, not the branch."""
    paths: list[str] | None = None
    """Only the rows of these data files; None means all rows."""
    compared: ComparedRows | None = None
    """If given, the rows in scope are those of the added files that are not in the removed ones, too, and the other
    rows are more by those that are."""


class ScanTarget(Model):
    """The views of one scan group, and the queries of its checks."""

    table: str
    types: dict[str, str]
    views: list[View]
    with_other_rows: bool = False
    queries: dict[str, CheckQuery]
    """By a key that the answer repeats."""


class ScanSpec(Model):
    """The input of `spark_jobs/scan.py`: the checks to answer."""

    spark_catalog: str
    main: str = "main"
    targets: list[ScanTarget]
    sample_rows: int
    last_attempt: bool = True
    """Whether every check gets an answer now, if need be an error. Before, a retryable error fails the job."""
    answer: str
    answer_key: str = ""
    """The key that seals the answer: only the worker and this job know it."""
    show_values: bool = False
    """Whether messages may quote values of rows."""


class QuarantineRowsSpec(Model):
    """The input of `spark_jobs/quarantine_rows.py`: the bad rows to move."""

    class BadRows(Model):
        """The bad rows of one table."""

        table: str
        quarantine: str
        """The table that they are moved to."""
        target: ScanTarget
        check_titles: dict[str, str]
        """The name and columns of each check, by the key of its query."""
        limit: int
        """If there are more bad rows than this, none is moved."""
        max_proportion: float | None = None
        """The proportion of the compared rows that may be bad, where only the job can count them."""
        keys: list[str] = Field(default_factory=list)
        """The columns that the run merged rows by: the old version of a row whose update is bad is kept."""

    spark_catalog: str
    audited_catalog: str
    """The Spark catalog that shows exactly what was audited; it may be that of the branch."""
    main: str = "main"
    run_id: str
    at: str
    tables: list[BadRows]
    answer: str
    answer_key: str = ""
    """The key that seals the answer: only the worker and this job know it."""
    show_values: bool = False
    """Whether messages may quote values of rows."""


class ScanAnswer(Model):
    """The answer of a scan to one check."""

    metrics: dict[str, Any] = Field(default_factory=dict)
    sample: list[dict[str, Any]] = Field(default_factory=list)
    error: str = ""
    """Why the check could not be answered; empty if it was."""


class UnreadableRows(Model):
    """Rows of a source that Spark refuses to read, by the first of them."""

    path: str
    record: str
    """Its text."""
    column: str = ""
    """The column whose value does not fit; empty where the record as a whole cannot be read."""
    value: str = ""
    type_name: str = ""
    """The type that the value does not fit, as SQL writes it."""
    values: int | None = None
    """How many values the first of them has, where that is not the number of columns."""
    columns: int = 0
    rows: int = 1
    there_may_be_more: bool = False


class JobAnswer(Model):
    """What a built-in job says at its end."""

    rows_read: int | None = None
    rows_written: int | None = None
    rows_merged: int | None = None
    """The rows that a merge was given, each with keys of its own."""
    types: GuessedTypes = NO_TYPES
    """The types of the columns that neither the pipeline nor the table types."""
    scans: dict[str, ScanAnswer] = Field(default_factory=dict)
    bad_rows: dict[str, int] = Field(default_factory=dict)
    """By table, how many rows break a check."""
    broken_checks: dict[str, dict[str, int]] = Field(default_factory=dict)
    """By table, how many of them break each check."""
    above_cap: dict[str, int] = Field(default_factory=dict)
    """The tables that have more of them than may be moved, with that number; then none was moved."""
    error: str = ""
    error_kind: Literal["", "InvalidInput", "InvalidPipeline", "NothingToDo", "JobFailed"] = ""
    unreadable: UnreadableRows | None = None
    """The rows that the job failed on, if it did on such."""
    causes: list[str] = Field(default_factory=list)
    """The errors behind it, each with its class: they tell whether a service was away."""


class SealedAnswer(Model):
    """An answer file: a `JobAnswer` as JSON, and its seal."""

    answer: str
    seal: str
    """The HMAC-SHA-256 of the answer with the key of the job, in hexadecimal."""
