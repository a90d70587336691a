"""What the command line asks about the lake: one query in, one result out, answered by an activity of a worker.

Each query names its activity by `kind`; `RESULTS` has what that activity returns.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from sluice.base_model import Model
from sluice.checks.verdicts import CheckResult
from sluice.contracts.arrivals import ListArrivalsInput, ListArrivalsResult
from sluice.contracts.examination import Examination, ExamineInstallationInput, ExamineSparkInput
from sluice.contracts.existing_rows import Resume
from sluice.contracts.publish import PlanPublishInput, PublishPlan
from sluice.contracts.rollback import PlanRollbackInput, PlanRollbackResult
from sluice.contracts.run import RunInput
from sluice.contracts.write import TableChange
from sluice.contracts.zone_loads import LoadPlan, PlanLoadInput
from sluice.errors import InvalidInput
from sluice.pipeline.model import Pipeline

MAX_RESULT_BYTES = 1024 * 1024
"""Temporal refuses payloads above 2 MiB, and encryption adds to what is measured here."""


class ListQuarantineInput(Model):
    """What `list_quarantine` lists: every quarantined branch, or the one of a run."""

    kind: Literal["list_quarantine"] = "list_quarantine"
    run: str | None = None
    """A branch, a run or workflow id, or a pipeline: refused where it names several. None lists all."""
    sizes: bool = False
    """Whether to measure the data files that only the branch holds, which reads its metadata."""


class QuarantineSummary(Model):
    """A quarantined branch, as its last commit describes it."""

    branch: str
    run_id: str
    workflow_id: str
    pipeline: str
    cause: str
    reason: str
    expires: str
    """Until when it is kept, in ISO 8601."""
    installation: str
    verified: bool = False
    """Whether the run verified that its write is complete: only then can it be released or repaired."""
    problem: str = ""
    """What its description lacks, so that it cannot be shown or released whole."""
    target: str = ""
    """The branch that its run was to publish to, where that is not main: the branch of a backfill."""
    created: str = ""
    """When it was quarantined, in ISO 8601; a day, where only that is known."""
    head: str = ""
    """Its newest commit, which says all this."""
    tables: dict[str, int | None] = Field(default_factory=dict)
    """By table, the net rows that its run verified; None where it verified none."""


class QuarantineEntry(Model):
    """A quarantined branch in a list."""

    summary: QuarantineSummary
    bytes: int | None = None
    """The size of data files that only this branch holds, if it was asked for."""


class ListQuarantineResult(Model):
    """The quarantined branches, the newest first."""

    quarantined: list[QuarantineEntry]


class DescribeQuarantineInput(Model):
    """What `describe_quarantine` describes: one quarantined branch."""

    kind: Literal["describe_quarantine"] = "describe_quarantine"
    run: str
    rows: int = Field(default=10, ge=0)
    """How many of the bad rows of each verdict to return, and of the added rows of each table."""


class QuarantinedTable(Model):
    """What a quarantined branch changes in one table."""

    change: TableChange | None
    """None where the table was dropped."""
    columns: list[str]
    """Columns that were added, dropped or changed, as `+ name type` and `- name type`."""
    bytes: int
    """The size of data files that only this branch holds."""
    rows: list[dict[str, Any]]
    """Some of the rows that were added."""


class DescribeQuarantineResult(Model):
    """Why a branch is quarantined, with every verdict, and what it changes."""

    summary: QuarantineSummary
    tables: dict[str, QuarantinedTable]
    checks: list[CheckResult]


class PlanReleaseInput(Model):
    """What `plan_release` plans: a run that audits a quarantined branch again, and publishes it."""

    kind: Literal["plan_release"] = "plan_release"
    run: str
    statements: list[str] = Field(default_factory=list)
    """SQL that repairs the rows first."""
    again: bool = False
    """Whether it may be published although its input was published meanwhile."""


class ReleasePlan(Model):
    """What a run of quarantined rows starts from."""

    summary: QuarantineSummary
    resume: Resume
    partition: str = ""
    """The partition of the quarantined run, or the time that it was scheduled for."""
    input_digest: str = ""
    """The identity of the input, as the quarantine keeps it."""
    tables: list[str] = Field(default_factory=list)
    """The tables that the quarantined branch changes."""


class RequeueSelection(Model):
    """Which quarantined rows are requeued, and which values are repaired."""

    table: str | None = None
    """The table, where a pipeline has several with a row quarantine."""
    run: str | None = None
    """Only rows that this run quarantined."""
    runs: list[str] | None = None
    """Only rows that one of these runs quarantined: those that a person was shown. None means all."""
    where: str | None = None
    """Only rows for which this condition is true."""
    values: list[str] = Field(default_factory=list)
    """Repairs, as `COLUMN=SQL`."""


class PlanRequeueInput(Model):
    """What `plan_requeue` plans: a run that moves rows from a quarantine table back into their table."""

    kind: Literal["plan_requeue"] = "plan_requeue"
    pipeline: Pipeline
    selection: RequeueSelection


class RequeuePlan(Model):
    """The run of a requeue: a pipeline of SQL statements, and the identity of its input."""

    pipeline: Pipeline
    input: RunInput
    runs: list[str] = Field(default_factory=list)
    """The runs that quarantined the rows, where the order of loads matters."""


class QueryAuditResultsInput(Model):
    """What `query_audit_results` answers: a query over the table `results`, in DuckDB's SQL."""

    kind: Literal["query_audit_results"] = "query_audit_results"
    sql: str


class QueryTablesInput(Model):
    """What `query_tables` runs: SQL that reads tables of main or of a branch."""

    kind: Literal["query_tables"] = "query_tables"
    sql: str
    ref: str = ""
    """A branch, or the run whose branch it is; empty means main."""


class QueryRows(Model):
    """The rows of a query, each with a value for every column."""

    columns: list[str]
    rows: list[list[Any]]
    head: str = ""
    """The hash that `SHOW TABLES` looked at."""


class ListFilesInput(Model):
    """What `list_files` lists: files that runs loaded, have in work, or that are quarantined."""

    kind: Literal["list_files"] = "list_files"
    paths: list[str] = Field(default_factory=list)
    """Paths, or patterns of them; empty means every file."""
    identities: list[str] = Field(default_factory=list)
    """Files that are known by what they hold, whatever their path: they are listed beside those of the paths."""
    table: str | None = None
    run: str | None = None
    """A run id, a workflow id or a pipeline."""
    limit: int = Field(default=100, ge=1, le=5000)


FileOutcome = Literal["published", "rolled back", "under way", "quarantined"]


class FileEntry(Model):
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
    """Since when, in ISO 8601."""
    commit: str
    """The commit on main that published it, or the head of the branch that holds it."""
    partition: str = ""
    """The partition or the scheduled time that it was loaded for, as `2018-01`; empty for neither."""


class ListFilesResult(Model):
    """Files in runs, the latest first."""

    files: list[FileEntry]
    total: int
    """How many there are, listed or not."""
    unknown: list[str] = Field(default_factory=list)
    """Runs of which it is not known what they loaded, each with the reason."""


LakeQueryInput = (
    ListQuarantineInput
    | DescribeQuarantineInput
    | PlanPublishInput
    | PlanReleaseInput
    | PlanRollbackInput
    | PlanRequeueInput
    | QueryAuditResultsInput
    | QueryTablesInput
    | ListFilesInput
    | ListArrivalsInput
    | PlanLoadInput
    | ExamineInstallationInput
    | ExamineSparkInput
)

RESULTS: Mapping[type[Model], type[Model]] = {
    ListQuarantineInput: ListQuarantineResult,
    DescribeQuarantineInput: DescribeQuarantineResult,
    PlanPublishInput: PublishPlan,
    PlanReleaseInput: ReleasePlan,
    PlanRollbackInput: PlanRollbackResult,
    PlanRequeueInput: RequeuePlan,
    QueryAuditResultsInput: QueryRows,
    QueryTablesInput: QueryRows,
    ListFilesInput: ListFilesResult,
    ListArrivalsInput: ListArrivalsResult,
    PlanLoadInput: LoadPlan,
    ExamineInstallationInput: Examination,
    ExamineSparkInput: Examination,
}
"""By query, what its activity returns."""


class LakeQueryRequest(Model):
    """What the workflow `LakeQuery` takes."""

    query: Annotated[LakeQueryInput, Field(discriminator="kind")]


def check_result_size(size: int, remedy: str) -> None:
    """Refuse a result that is too large for Temporal.

    Args:
        size: its size in bytes as JSON.
        remedy: how to make it smaller.

    Raises:
        InvalidInput: it is.
    """
    if size > MAX_RESULT_BYTES:
        raise InvalidInput(
            f"the result is larger than {MAX_RESULT_BYTES // 1024**2} MiB, the most that a query returns through "
            f"Temporal: {remedy}"
        )
