"""Messages of a run: its status and its result."""

from typing import Final, Literal

from pydantic import Field

from sluice.approval.decisions import ApprovalRecord
from sluice.approval.waivers import WaivedCheck
from sluice.base_model import WireMessage
from sluice.causes import Cause
from sluice.checks.verdicts import CheckResult
from sluice.contracts.guessed_types import NO_TYPES, GuessedTypes
from sluice.contracts.references import CatalogIdMessage, RunRef
from sluice.contracts.registration import Registration
from sluice.contracts.selected_input import SelectedInput
from sluice.contracts.table_changes import ChangeSummary, RowNumbers, TableChange
from sluice.pipeline.publish_options import PublishOptions

Outcome = Literal["published", "checked", "skipped", "quarantined", "discarded", "cancelled", "failed"]
Stage = Literal[
    "starting", "opening", "selecting input", "writing", "verifying", "auditing", "scanning", "quarantining rows",
    "pre-merge check", "waiting for approval", "publishing", "rebasing", "cleaning up", "registering", "ended",
]  # fmt: skip
WAITING: Final = "waiting for approval"
"""The stage of a run that waits for a decision."""


RUN_WORKFLOW = "WriteAuditPublish"
"""Name of the workflow of a run, for clients that do not import the workflow."""
STATUS_QUERY = "status"
"""Name of its query that returns a `RunStatus`."""


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
    """Number of attempts lost with their workers or services. They do not count in the pipeline's `write.attempts`."""
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
