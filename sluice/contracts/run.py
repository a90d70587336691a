"""Messages of a run: the request that starts it, its status, and its result."""

import hashlib
from typing import Final, Literal

from pydantic import Field

from sluice.approval.decisions import ApprovalRecord
from sluice.approval.required import SignedStart, StartStatement
from sluice.approval.waivers import WaivedCheck
from sluice.base_model import WireMessage
from sluice.causes import Cause
from sluice.checks.verdicts import CheckResult
from sluice.contracts.existing_rows import Restore, Resume
from sluice.contracts.guessed_types import NO_TYPES, GuessedTypes
from sluice.contracts.input import SelectedInput
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.references import CatalogIdMessage, LineageParent, RunRef
from sluice.contracts.registration import Registration
from sluice.contracts.write import ChangeSummary, RowNumbers, TableChange
from sluice.pipeline.model import Pipeline
from sluice.pipeline.publish_options import PublishOptions
from sluice.pipeline.scope import NO_SCOPE, LoadScope

Outcome = Literal["published", "checked", "skipped", "quarantined", "discarded", "cancelled", "failed"]
Stage = Literal[
    "starting", "opening", "selecting input", "writing", "verifying", "auditing", "scanning", "quarantining rows",
    "pre-merge check", "waiting for approval", "publishing", "rebasing", "compensating", "cleaning up", "registering",
    "ended",
]  # fmt: skip
WAITING: Final = "waiting for approval"
"""The stage of a run that waits for a decision."""


RUN_WORKFLOW = "WriteAuditPublish"
"""Name of the workflow of a run, for clients that do not import the workflow."""
STATUS_QUERY = "status"
"""Name of its query that returns a `RunStatus`."""
REVISION = 1
"""Newest revision of the workflow. A change of the order of its activity calls increments it; see ADR 20."""


_ID_DIGITS = 12
"""Number of digits of the input digest in a workflow id."""


def run_workflow_id(pipeline: str, digest: str, kind: str = "") -> str:
    """Return the workflow id of the run of a pipeline with an input of this digest."""
    return f"{pipeline}-{digest[:_ID_DIGITS]}{kind}"


class InputFile(WireMessage):
    """A file to load: its path, its size in bytes, and its identity."""

    path: str
    size: int
    identity: str
    """SHA-256 of its content, or the checksum that its store keeps; see ADR 25.

    Files with one identity contain the same rows, whatever their names. If folders are columns, their values are part
    of the identity.
    """


class RunInput(WireMessage):
    """Files that a run loads, and their identity."""

    digest: str
    """SHA-256 over the identities of all files and the scope. With the pipeline's name, it identifies the run."""
    files: int = 0
    bytes: int = 0
    scope: LoadScope = NO_SCOPE
    """Partition and scheduled time that decide what the run writes."""


class Policy(WireMessage):
    """Time-outs of a run, in seconds, and its other limits. `workflows/activity_calls.py` applies them."""

    heartbeat_timeout: float = 15.0
    """Time without a heartbeat after which Temporal considers a worker dead."""
    open_timeout: float = 60.0
    """Time for which the catalog may be unavailable when a run begins, before the run gives up.

    For a run that no person started, it has the value of `step_timeout`.
    """
    step_timeout: float = 24 * 3600.0
    """Time for which a service may be unavailable in the middle of a run, and maximum duration of a scan."""
    wait_timeout: float = 24 * 3600.0
    """Time for which lost attempts are repeated, and maximum wait of a job for Spark."""
    max_rewrites: int = Field(default=5, ge=0)
    """Maximum number of rewrites of a run after conflicts with main."""
    max_rebases: int = Field(default=100, ge=0)
    """Maximum number of rebases of a run onto a newer main."""
    spark_queue: str = ""
    """Task queue of activities that run Spark; empty means the task queue of the run with `-spark` appended."""
    activity_timeout: float = 180.0
    """Maximum duration of one try of an activity on the catalog, before another worker tries."""
    registration_wait: float = 10.0
    """Time that a published run waits for its registrations, which continue without it."""
    merge_queue: bool = True
    """True if a run waits for the merge slot of a table after its second conflict; `bench/merge_queue.py` compares."""


class RunRequest(WireMessage):
    """Input of the workflow: a pipeline, the input to load, and options."""

    pipeline: Pipeline
    input: RunInput
    starter: str
    asked_by: str = ""
    """Person for whom a backfill started the run; empty if the starter requested it."""
    folder: str = ""
    """Working directory in which the run was started."""
    resume: Resume | None = None
    restore: Restore | None = None
    again: bool = False
    """True if an input that was published before may be published again."""
    publish: bool = True
    """True if the run publishes data that passes the audit. Otherwise it ends `checked`, and never keeps its data."""
    one_content_per_path: bool = False
    """True if the run refuses a file whose path main has with other content. Its landing zone decides about it."""
    order: LoadOrder = LoadOrder()
    """Age of its rows, so that they do not replace younger ones."""
    target: str = ""
    """Branch that the run publishes to, if it is not main: a backfill collects its partitions there."""
    policy: Policy = Field(default_factory=Policy)
    search_attributes: bool = False
    """True if the server has Sluice's search attributes."""
    guarantee: str = ""
    """Guarantee of the publish, as a worker stated it before the start; empty if no worker did."""
    revision: int = Field(default=1, ge=1)
    """Revision of the workflow that the run follows to its end, on every worker.

    `start_run` names the newest. A request that names none follows the first, so that a later replay takes the same
    path.
    """
    signed_start: SignedStart | None = None
    """Signature of the person who started the run, if this person has a key."""
    lineage_parent: LineageParent | None = None
    """OpenLineage run that started this one, if it is known."""

    def start_statement(self, workflow_id: str) -> StartStatement:
        """Return the statement about the start of this run that its starter signs."""
        continued = self.resume or self.restore
        return StartStatement(
            workflow_id=workflow_id,
            pipeline_digest=self.pipeline.digest,
            input_digest=self.input.digest,
            continues=hashlib.sha256(continued.model_dump_json().encode()).hexdigest() if continued else "",
        )


class Notification(WireMessage):
    """Input of `notify`: a run that ended or waits for approval."""

    result: "RunResult"
    waiting_until: str = ""
    """End of the wait for approval, in ISO 8601; empty for a run that ended."""
    tables: list[str] = Field(default_factory=list)
    """Tables of the pipeline. Routes match them if the run has changed none."""


class RecordRunInput(CatalogIdMessage):
    """Input of `record_run`: store the report and the audit results of a run that ended."""

    run_ref: RunRef
    result: "RunResult"
    head: str = ""
    """Hash of the branch whose verdicts the report store has, even if the audit did not finish."""
    ended_at: str


class Conflict(WireMessage):
    """A conflict and its resolution: main changed tables that the run changes or reads."""

    tables: list[str]
    """Tables that main had changed."""
    resolved: Literal["rebased", "rewritten"]
    why: str = ""
    """Reason for the rewrite, and the tables that main only compacted."""


class StageEvent(WireMessage):
    """Entry of a run into a stage."""

    stage: Stage
    at: str
    note: str = ""


class RunResult(WireMessage):
    """Result of a run, or its present state. `run_workflow.py --json` prints exactly this."""

    run_id: str
    workflow_id: str
    pipeline: str
    outcome: Outcome | None = None
    reason: str = ""
    cause: Cause | None = None
    branch: str | None = None
    """Quarantined branch; while the run continues, the branch of the attempt."""
    audited_hash: str | None = None
    """Hash of the branch that the present attempt has audited; None before its audit is finished."""
    guarantee: str = ""
    """Guarantee if a server crashes during the publish; empty if it is not known yet."""
    main_before: str | None = None
    main_after: str | None = None
    publish: PublishOptions = PublishOptions()
    """Message and metadata of the merge commit, besides its certificate; an empty message means the default one."""
    input: SelectedInput | None = None
    """Summary of the files that the present attempt loads and of those that it left out."""
    types: GuessedTypes = NO_TYPES
    """Types of the columns of its files for which neither the pipeline nor the table states a type."""
    tables: dict[str, TableChange] = Field(default_factory=dict)
    summary: ChangeSummary | None = None
    """Totals over `tables`; None while nothing is written."""
    checks: list[CheckResult] = Field(default_factory=list)
    waived: list[WaivedCheck] = Field(default_factory=list)
    """Failed checks that are waived, with the person, end and reason of each waiver. Their verdicts stay `fail`."""
    bad_rows: dict[str, int] = Field(default_factory=dict)
    """Number of rows that broke a check and went to the quarantine table in the same merge, by table."""
    released: str = ""
    """Run whose quarantine this one releases or repairs; empty if it does neither."""
    repaired: dict[str, RowNumbers] = Field(default_factory=dict)
    """Number of rows that the SQL of a repair changed, by table, if they could be compared."""
    broken_checks: dict[str, dict[str, int]] = Field(default_factory=dict)
    """Number of the `bad_rows` that broke each check, by table."""
    conflicts: list[Conflict] = Field(default_factory=list)
    """All conflicts with main, latest last."""
    approval: ApprovalRecord | None = None
    report: str | None = None
    """Location of the complete report of a run that ended, as JSON."""
    registrations: list[Registration] = Field(default_factory=list)
    """State of the registrations at targets when the report was made. They continue after the run."""
    attempts: int = 0
    lost_attempts: int = 0
    """Number of attempts lost with their workers or services. They do not count in the pipeline's `attempts`."""
    timings: dict[str, float] = Field(default_factory=dict)
    """Seconds by stage, over all attempts, and `total`."""


class ReportedRun(RunResult):
    """A run as `status --json` prints it and the API of the page returns it."""

    stage: Stage
    deadline: str = ""
    """End of the wait for approval, in ISO 8601, while it lasts."""
    audit_digest: str = ""


class RunStatus(WireMessage):
    """Answer to the query `status`."""

    stage: Stage
    events: list[StageEvent]
    result: RunResult
    audit_digest: str = ""
    deadline: str = ""
    """End of the wait for approval, in ISO 8601, while it lasts."""
