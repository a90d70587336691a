"""Queries of the command line about the lake, and their results. An activity of a worker answers each query.

Each query names its activity in `kind`; `RESULTS` has the type that this activity returns.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.checks.verdicts import CheckResult
from sluice.contracts.arrivals import ListArrivalsInput, ListArrivalsResult
from sluice.contracts.examination import Examination, ExamineInstallationInput, ExamineSparkInput
from sluice.contracts.existing_rows import Resume
from sluice.contracts.publish import PlanPublishInput, PublishPlan
from sluice.contracts.rollback import PlanRollbackInput, PlanRollbackResult
from sluice.contracts.run import RunInput
from sluice.contracts.table_diffs import DiffTablesInput, DiffTablesResult
from sluice.contracts.write import TableChange
from sluice.contracts.zone_loads import LoadPlan, PlanLoadInput
from sluice.errors import InvalidInput
from sluice.pipeline.model import Pipeline

LAKE_QUERY = "LakeQuery"
"""Name of the workflow of a query about the lake, for clients that do not import the workflow."""

MAX_RESULT_BYTES = 1024 * 1024
"""Maximum size of a result, in bytes.

Temporal refuses payloads above 2 MiB, and encryption adds to the size that is measured here.
"""


class ListQuarantineInput(WireMessage):
    """Input of `list_quarantine`: list every quarantined branch, or the one of a run."""

    kind: Literal["list_quarantine"] = "list_quarantine"
    run: str | None = None
    """Branch, run id, workflow id or pipeline; refused if it matches several branches. None lists all."""
    sizes: bool = False
    """True to measure the data files that only the branch has, which requires reading its metadata."""


class QuarantineSummary(WireMessage):
    """A quarantined branch, as its last commit describes it."""

    branch: str
    run_id: str
    workflow_id: str
    pipeline: str
    cause: str
    reason: str
    expires: str
    """End of its retention, in ISO 8601."""
    installation: str
    verified: bool = False
    """True if the run verified that its write is complete. Only such a branch can be released or repaired."""
    problem: str = ""
    """Defect of its description that prevents showing or releasing all of it; empty if there is none."""
    target: str = ""
    """Branch that its run was to publish to, if it is not main: the branch of a backfill."""
    created: str = ""
    """Time of the quarantine, in ISO 8601; only the day if the time is not known."""
    head: str = ""
    """Hash of its newest commit, which contains this description."""
    quarantined_hash: str = ""
    """Hash with exactly the unpublished changes; empty if not recorded, or for a worker that does not state it."""
    tables: dict[str, int | None] = Field(default_factory=dict)
    """Net number of rows that its run verified, by table; None if it verified none."""


class QuarantineEntry(WireMessage):
    """A quarantined branch in a list."""

    summary: QuarantineSummary
    bytes: int | None = None
    """Size of the data files that only this branch has, in bytes; None unless requested."""


class ListQuarantineResult(WireMessage):
    """Quarantined branches, newest first."""

    quarantined: list[QuarantineEntry]


class DescribeQuarantineInput(WireMessage):
    """Input of `describe_quarantine`: describe one quarantined branch."""

    kind: Literal["describe_quarantine"] = "describe_quarantine"
    run: str
    rows: int = Field(default=10, ge=0)
    """Maximum number of bad rows to return for each verdict, and of added rows for each table."""


class QuarantinedTable(WireMessage):
    """Changes of a quarantined branch in one table."""

    change: TableChange | None
    """Change of the table; None if it was dropped."""
    columns: list[str]
    """Added, dropped or changed columns, as `+ name type` and `- name type`."""
    bytes: int
    """Size of the data files that only this branch has, in bytes."""
    rows: list[dict[str, Any]]
    """Some of the added rows."""


class DescribeQuarantineResult(WireMessage):
    """Result of `describe_quarantine`: the reason for the quarantine, every verdict, and the changes."""

    summary: QuarantineSummary
    tables: dict[str, QuarantinedTable]
    checks: list[CheckResult]


class PlanReleaseInput(WireMessage):
    """Input of `plan_release`: plan a run that audits a quarantined branch again and publishes it."""

    kind: Literal["plan_release"] = "plan_release"
    run: str
    statements: list[str] = Field(default_factory=list)
    """SQL statements that repair the rows first."""
    again: bool = False
    """True if it may be published even if its input has been published meanwhile."""


class ReleasePlan(WireMessage):
    """Starting point of a run that publishes quarantined rows."""

    summary: QuarantineSummary
    resume: Resume
    partition: str = ""
    """Partition of the quarantined run, or its scheduled time."""
    input_digest: str = ""
    """Identity of the input, as the quarantine records it."""
    tables: list[str] = Field(default_factory=list)
    """Tables that the quarantined branch changes."""


class RequeueSelection(WireMessage):
    """Selection of the quarantined rows to requeue, and repairs of their values."""

    table: str | None = None
    """Table of the rows, if the pipeline has several tables with a row quarantine."""
    run: str | None = None
    """Run that quarantined the rows; None for any run."""
    runs: list[str] | None = None
    """Runs that quarantined the rows, as shown to a person; None for any run."""
    where: str | None = None
    """Condition that is true for the rows; None for all rows."""
    values: list[str] = Field(default_factory=list)
    """Repairs, as `COLUMN=SQL`."""


class PlanRequeueInput(WireMessage):
    """Input of `plan_requeue`: plan a run that moves rows from a quarantine table back into their table."""

    kind: Literal["plan_requeue"] = "plan_requeue"
    pipeline: Pipeline
    selection: RequeueSelection


class RequeuePlan(WireMessage):
    """Result of `plan_requeue`: a pipeline of SQL statements for the run, and the identity of its input."""

    pipeline: Pipeline
    input: RunInput
    runs: list[str] = Field(default_factory=list)
    """Runs that quarantined the rows, if the order of loads matters."""


class QueryAuditResultsInput(WireMessage):
    """Input of `query_audit_results`: a query over the table `results`, in DuckDB's SQL."""

    kind: Literal["query_audit_results"] = "query_audit_results"
    sql: str


class QueryTablesInput(WireMessage):
    """Input of `query_tables`: SQL that reads tables of main or of a branch."""

    kind: Literal["query_tables"] = "query_tables"
    sql: str
    ref: str = ""
    """Branch to read, or the run whose branch to read; empty means main."""


class QueryRows(WireMessage):
    """Result rows of a query, each with a value for every column."""

    columns: list[str]
    rows: list[list[Any]]
    head: str = ""
    """Hash at which `SHOW TABLES` listed the tables."""


class ListFilesInput(WireMessage):
    """Input of `list_files`: list files that runs loaded or are loading, or that are quarantined."""

    kind: Literal["list_files"] = "list_files"
    paths: list[str] = Field(default_factory=list)
    """Paths or path patterns; empty means every file."""
    identities: list[str] = Field(default_factory=list)
    """Identities of files to list in addition to those of `paths`, whatever their path."""
    table: str | None = None
    run: str | None = None
    """Run id, workflow id or pipeline."""
    limit: int = Field(default=100, ge=1, le=5000)


FileOutcome = Literal["published", "rolled back", "under way", "quarantined"]


class FileEntry(WireMessage):
    """One file in one run."""

    path: str
    size: int
    identity: str
    table: str
    run_id: str
    workflow_id: str
    pipeline: str
    outcome: FileOutcome
    since: str
    """Time since which the outcome applies, in ISO 8601."""
    commit: str
    """Commit on main that published the file, or head of the branch that contains it."""
    partition: str = ""
    """Partition or scheduled time that it was loaded for, as `2018-01`; empty for neither."""


class ListFilesResult(WireMessage):
    """Files in runs, latest first."""

    files: list[FileEntry]
    total: int
    """Total number, including files that are not listed."""
    unknown: list[str] = Field(default_factory=list)
    """Runs whose loaded files are not known, each with the reason."""


LakeQueryInput = (
    ListQuarantineInput
    | DescribeQuarantineInput
    | PlanPublishInput
    | PlanReleaseInput
    | PlanRollbackInput
    | PlanRequeueInput
    | QueryAuditResultsInput
    | QueryTablesInput
    | DiffTablesInput
    | ListFilesInput
    | ListArrivalsInput
    | PlanLoadInput
    | ExamineInstallationInput
    | ExamineSparkInput
)

RESULTS: Mapping[type[WireMessage], type[WireMessage]] = {
    ListQuarantineInput: ListQuarantineResult,
    DescribeQuarantineInput: DescribeQuarantineResult,
    PlanPublishInput: PublishPlan,
    PlanReleaseInput: ReleasePlan,
    PlanRollbackInput: PlanRollbackResult,
    PlanRequeueInput: RequeuePlan,
    QueryAuditResultsInput: QueryRows,
    QueryTablesInput: QueryRows,
    DiffTablesInput: DiffTablesResult,
    ListFilesInput: ListFilesResult,
    ListArrivalsInput: ListArrivalsResult,
    PlanLoadInput: LoadPlan,
    ExamineInstallationInput: Examination,
    ExamineSparkInput: Examination,
}
"""Type of the result, by type of the query."""


class LakeQueryRequest(WireMessage):
    """Input of the workflow `LakeQuery`."""

    query: Annotated[LakeQueryInput, Field(discriminator="kind")]


def check_result_size(size: int, remedy: str) -> None:
    """Refuse a result that is too large for Temporal.

    Args:
        size: its size in bytes as JSON.
        remedy: how to make it smaller.

    Raises:
        InvalidInput: the result is larger than `MAX_RESULT_BYTES`.
    """
    if size > MAX_RESULT_BYTES:
        raise InvalidInput(
            f"the result is larger than {MAX_RESULT_BYTES // 1024**2} MiB, the most that a query returns through "
            f"Temporal: {remedy}"
        )
