"""Inputs and answers of the built-in Spark jobs, stored as files in the folder of their log."""

from typing import Any, Literal

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.checks.base import CheckQuery
from sluice.contracts.guessed_types import NO_TYPES, GuessedTypes
from sluice.pipeline.table import Table
from sluice.pipeline.write import Write


class ColumnGroup(WireMessage):
    """Parquet files in which each column has one type, or none."""

    files: list[str]
    untyped: list[str]
    """Columns that contain only NULL in these files and state no type."""


class NanosecondColumn(WireMessage):
    """A column of Parquet files with times in nanoseconds."""

    name: str
    is_utc: bool
    """True for points in time, False for local times without a zone."""


class MissingFields(WireMessage):
    """A Parquet or ORC file without columns or fields that other files of the run have."""

    file: str
    fields: list[str]
    """Columns, and fields in the form `a.b` or `list[].c`."""


KindOfTimes = Literal["int96", "orc", "orc_without_calendar"]
"""Kinds of times that Spark may read as other times: INT96 of Parquet; times of ORC; times and days of ORC files that
do not state the calendar of days before 1582-10-15."""


class ForeignTimes(WireMessage):
    """Files of other programs than Spark, with times that the job verifies before it loads them."""

    kind: KindOfTimes
    columns: list[str]
    """Columns with such times, at any depth. They have the same types in all files."""
    files: list[str]


class IngestSpec(WireMessage):
    """Input of `spark_jobs/ingest.py`: the files and the write."""

    spark_catalog: str
    write: Write
    files: list[str] = Field(default_factory=list)
    bytes: int = 0
    """Total size of the files, in bytes."""
    rows: int | None = None
    """Number of rows that must be read, counted beforehand and without Spark; None if it is not known."""
    read_whole: dict[str, list[str]] = Field(default_factory=dict)
    """CSV files that are not read line by line, by the line end of their rows; an empty key means that Spark detects
    it."""
    one_value: list[str] = Field(default_factory=list)
    """JSON files that are one array or object, instead of one value per line."""
    empty_objects: list[str] = Field(default_factory=list)
    """JSON files that contain `{}`, maybe as a part of a text."""
    column_groups: list[ColumnGroup] = Field(default_factory=list)
    """All files in groups, if columns of Parquet files have no type or differ in type; otherwise empty."""
    nanoseconds: list[NanosecondColumn] = Field(default_factory=list)
    foreign_times: list[ForeignTimes] = Field(default_factory=list)
    missing_fields: list[MissingFields] = Field(default_factory=list)
    """Parquet or ORC files without columns or fields that others have: the first file of those with the same fields.
    Empty unless the write needs all fields of the table."""
    is_sorted: bool = False
    """True if the table exists and Spark sorts the written rows. Spark then samples the rows first."""
    base_path: str | None = None
    tables: dict[str, Table]
    answer: str
    """Path where the job leaves its `JobAnswer`, sealed."""
    answer_key: str = ""
    """Key that seals the answer. Only the worker and this job know it."""
    show_values: bool = False
    """True if messages may quote values of rows."""


class ConnectJobSpec(WireMessage):
    """Input of `spark_jobs/connect_client.py`: the program to run, and its session."""

    url: str
    """Spark Connect server, as `sc://HOST:PORT`."""
    session: str
    """Id of the job's own session, a UUID."""
    earlier_sessions: list[str] = Field(default_factory=list)
    """Sessions of earlier tries. The client releases them before its own session begins."""
    tag: str = "sluice"
    """Tag with which the operations of the session can be interrupted."""
    built_in: bool = True
    """True for one of Sluice's jobs, which imports Sluice's modules."""
    python_paths: list[str] = Field(default_factory=list)
    """Additional folders in which a user's program finds modules."""
    program: str = ""
    """Program to run; empty to release the session instead."""
    args: list[str] = Field(default_factory=list)
    conf: dict[str, str] = Field(default_factory=dict)
    """Spark configuration of the pipeline."""
    session_conf: dict[str, str] = Field(default_factory=dict)
    """Configuration that the pipeline cannot change: the branch, the run and attempt of its snapshots."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Environment variables that the pipeline sets for its program."""
    shared_views: str = ""
    """Database of temporary views that all sessions of the server share; empty if the server is not this worker's."""
    working_directory: str = ""
    released_file: str = ""
    """File that the client creates after it has released the session."""


class ComparedRows(WireMessage):
    """Files whose rows are compared, because a merge copied unchanged rows into the files that it added."""

    added: list[str]
    main_hash: str
    """Hash of main at which the removed files are live."""
    removed: list[str]


class View(WireMessage):
    """Rows of a table, under the name that queries use."""

    name: str
    table: str
    main_hash: str = ""
    """Hash of main to read instead of the branch; empty reads the branch."""
    paths: list[str] | None = None
    """Data files whose rows to read; None means all rows."""
    compared: ComparedRows | None = None
    """Added and removed files whose rows must be compared, if any.

    The rows in scope are then the rows of the added files that the removed files do not contain. Rows that both
    contain belong to the other rows.
    """


class ScanTarget(WireMessage):
    """Views of one scan group, and the queries of its checks."""

    table: str
    types: dict[str, str]
    views: list[View]
    with_other_rows: bool = False
    queries: dict[str, CheckQuery]
    """Queries of the checks, by a key that the answer repeats."""


class ScanSpec(WireMessage):
    """Input of `spark_jobs/scan.py`: the checks to answer."""

    spark_catalog: str
    main: str = "main"
    targets: list[ScanTarget]
    sample_rows: int
    last_attempt: bool = True
    """True if every check gets an answer, if need be an error. On earlier attempts, a retryable error fails the job."""
    answer: str
    answer_key: str = ""
    """Key that seals the answer. Only the worker and this job know it."""
    show_values: bool = False
    """True if messages may quote values of rows."""


class QuarantineRowsSpec(WireMessage):
    """Input of `spark_jobs/quarantine_rows.py`: the bad rows to move."""

    class BadRows(WireMessage):
        """Bad rows of one table."""

        table: str
        quarantine: str
        """Table that they are moved to."""
        target: ScanTarget
        check_titles: dict[str, str]
        """Name and columns of each check, by the key of its query."""
        limit: int
        """Maximum number of bad rows, without those that were moved before. If there are more, the job moves none."""
        max_proportion: float | None = None
        """Maximum proportion of bad rows among the compared rows, if only the job can count them."""
        moved_before: int = 0
        """Number of rows that were moved before. They count as compared rows, and as bad ones."""
        keys: list[str] = Field(default_factory=list)
        """Columns by which the run merged rows. The job keeps the old version of a row whose update is bad."""

    spark_catalog: str
    audited_catalog: str
    """Spark catalog that shows exactly the audited state. It may be the catalog of the branch."""
    main: str = "main"
    run_id: str
    at: str
    tables: list[BadRows]
    answer: str
    answer_key: str = ""
    """Key that seals the answer. Only the worker and this job know it."""
    show_values: bool = False
    """True if messages may quote values of rows."""


class ScanAnswer(WireMessage):
    """Answer of a scan to one check."""

    metrics: dict[str, Any] = Field(default_factory=dict)
    sample: list[dict[str, Any]] = Field(default_factory=list)
    error: str = ""
    """Reason why the check could not be answered; empty if it was."""


class UnreadableRows(WireMessage):
    """Rows of a source that Spark refuses to read, described by the first of them."""

    path: str
    record: str
    """Text of the record."""
    column: str = ""
    """Column whose value does not fit; empty if the record as a whole cannot be read."""
    value: str = ""
    type_name: str = ""
    """Type that the value does not fit, in SQL notation."""
    problem: str = ""
    """Problem of the column if its value is NULL against the schema, or of a record that cannot be parsed."""
    is_of_table: bool = False
    """True if this type is known from the table alone."""
    values: int | None = None
    """Number of values in the record, if it differs from the number of columns."""
    columns: int = 0
    rows: int = 1
    there_may_be_more: bool = False


class JobAnswer(WireMessage):
    """Answer that a built-in job leaves at its end."""

    rows_read: int | None = None
    rows_written: int | None = None
    rows_merged: int | None = None
    """Number of rows that a merge received, each with keys of its own."""
    types: GuessedTypes = NO_TYPES
    """Types of the columns for which neither the pipeline nor the table states a type."""
    scans: dict[str, ScanAnswer] = Field(default_factory=dict)
    bad_rows: dict[str, int] = Field(default_factory=dict)
    """Number of rows that break a check, by table."""
    broken_checks: dict[str, dict[str, int]] = Field(default_factory=dict)
    """Number of the `bad_rows` that break each check, by table."""
    above_cap: dict[str, int] = Field(default_factory=dict)
    """Number of bad rows in each table that has more than may be moved. If there is any, no row was moved."""
    error: str = ""
    error_kind: Literal["", "InvalidInput", "InvalidPipeline", "NothingToDo", "JobFailed"] = ""
    unreadable: UnreadableRows | None = None
    """Unreadable rows that made the job fail, if any did."""
    repeats_name: bool = False
    """True if the job failed because two columns or fields have one name."""
    causes: list[str] = Field(default_factory=list)
    """Errors that caused `error`, each with its class. They show if a service was unavailable."""


class SealedAnswer(WireMessage):
    """Content of an answer file: a `JobAnswer` as JSON, and its seal."""

    answer: str
    seal: str
    """HMAC-SHA-256 of the answer with the key of the job, in hexadecimal."""
