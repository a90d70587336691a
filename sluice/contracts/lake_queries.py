"""Queries of the command line about the lake, and their results. An activity of a worker answers each query.

Each query names its activity in `kind`; `RESULTS` has the type that this activity returns.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from sluice.base_model import WireMessage
from sluice.contracts.arrivals import ListArrivalsInput, ListArrivalsResult
from sluice.contracts.examination import Examination, ExamineInstallationInput, ExamineSparkInput
from sluice.contracts.existing_rows import Resume
from sluice.contracts.lake_query import LakeQueryMessage
from sluice.contracts.publish import PlanPublishInput, PublishPlan
from sluice.contracts.quarantine_queries import (
    DescribeQuarantineInput,
    DescribeQuarantineResult,
    ListQuarantineInput,
    ListQuarantineResult,
    QuarantineSummary,
)
from sluice.contracts.rollback import PlanRollbackInput, PlanRollbackResult
from sluice.contracts.run_request import RunInput
from sluice.contracts.table_diffs import DiffTablesInput, DiffTablesResult
from sluice.contracts.zone_loads import LoadPlan, PlanLoadInput
from sluice.errors import InvalidInput
from sluice.pipeline.model import Pipeline
from sluice.pipeline.scope import NO_SCOPE, LoadScope

MAX_RESULT_BYTES = 1024 * 1024
"""Maximum size of a result, in bytes.

Temporal refuses payloads above 2 MiB, and encryption adds to the size that is measured here.
"""


class PlanReleaseInput(LakeQueryMessage):
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
    scope: LoadScope = NO_SCOPE
    """Scope of the input, as far as the quarantine records it."""
    pipeline_digest: str = ""
    """Digest of the pipeline with which a backfill collected its partitions; empty for any other quarantine."""
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


class PlanRequeueInput(LakeQueryMessage):
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
    files_of_runs: list[str] = Field(default_factory=list)
    """Runs that quarantined the rows, if only later loads of other content of their files matter."""


class QueryAuditResultsInput(LakeQueryMessage):
    """Input of `query_audit_results`: a query over the table `results`, in DuckDB's SQL."""

    kind: Literal["query_audit_results"] = "query_audit_results"
    sql: str


class QueryTablesInput(LakeQueryMessage):
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


class ListFilesInput(LakeQueryMessage):
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


FileOutcome = Literal["published", "rolled back", "table dropped", "under way", "quarantined"]


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
    """Input of the workflow `LakeQuery`, as a worker reads it. A command sends it as a `SentLakeQuery`."""

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
