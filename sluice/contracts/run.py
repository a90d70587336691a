"""The messages of a run: the request that starts it, its status, and its result."""

import hashlib
from typing import Literal

from pydantic import Field

from sluice.approval.decisions import ApprovalRecord
from sluice.approval.required import SignedStart, StartStatement
from sluice.approval.waivers import WaivedCheck
from sluice.base_model import Model
from sluice.checks.verdicts import CheckResult
from sluice.contracts.existing_rows import Restore, Resume
from sluice.contracts.guessed_types import NO_TYPES, GuessedTypes
from sluice.contracts.input import SelectedInput
from sluice.contracts.load_order import LoadOrder
from sluice.contracts.references import LineageParent, RunRef
from sluice.contracts.registration import Registration
from sluice.contracts.write import ChangeSummary, RowNumbers, TableChange
from sluice.pipeline.model import Pipeline
from sluice.pipeline.publish_options import PublishOptions
from sluice.pipeline.scope import NO_SCOPE, LoadScope

Outcome = Literal["published", "checked", "skipped", "quarantined", "discarded", "cancelled", "failed"]
Cause = Literal[
    "audit", "rejected", "expired", "cancelled", "error", "invalid", "already_published", "unreachable",
    "nothing_to_do", "checked", "input_changed",
]  # fmt: skip
Stage = Literal[
    "starting", "opening", "selecting input", "writing", "verifying", "auditing", "scanning", "quarantining rows",
    "pre-merge check", "waiting for approval", "publishing", "rebasing", "compensating", "cleaning up", "registering",
    "ended",
]  # fmt: skip


REVISION = 1
"""The newest revision of the workflow. A change of the order of its activity calls increments it; see ADR 20."""


_ID_DIGITS = 12
"""How many digits of the input's digest are part of a workflow id."""


def run_workflow_id(pipeline: str, digest: str, kind: str = "") -> str:
    """Return the workflow id of the run of a pipeline with an input of this digest."""
    return f"{pipeline}-{digest[:_ID_DIGITS]}{kind}"


class InputFile(Model):
    """One file to load: its path, its size in bytes, and its identity."""

    path: str
    size: int
    identity: str
    """What it holds: the SHA-256 of its content, or the checksum that its store keeps; see ADR 25. Files of one
    identity hold the same rows, whatever they are called. Where folders are columns, their values are part of it."""


class RunInput(Model):
    """The files that a run loads, and their identity."""

    digest: str
    """The SHA-256 over the identities of all files and the scope: with the pipeline's name, the identity of the run."""
    files: int = 0
    bytes: int = 0
    scope: LoadScope = NO_SCOPE
    """The partition and the scheduled time that decide what the run writes."""


class Policy(Model):
    """The time-outs of a run, in seconds, and its other limits. `workflows/activity_calls.py` applies them."""

    heartbeat_timeout: float = 15.0
    """After this long without a heartbeat, Temporal considers a worker dead."""
    open_timeout: float = 60.0
    """How long the catalog may be unavailable when a run begins, before the run gives up. That of a run that no person
    started is `step_timeout`."""
    step_timeout: float = 24 * 3600.0
    """How long a service may be unavailable in the middle of a run, and how long a scan may take."""
    wait_timeout: float = 24 * 3600.0
    """How long attempts that are lost with workers and services are repeated, and how long a job may wait for Spark."""
    max_rewrites: int = Field(default=5, ge=0)
    """How often a run is rewritten after a conflict with main."""
    max_rebases: int = Field(default=100, ge=0)
    """How often a run is rebased onto a newer main."""
    spark_queue: str = ""
    """The task queue of activities that run Spark; empty means that of the run with `-spark` appended."""
    activity_timeout: float = 180.0
    """How long one try of an activity on the catalog may take before another worker tries."""
    registration_wait: float = 10.0
    """How long a published run waits for its registrations, which go on without it."""
    merge_queue: bool = True
    """Whether a run waits for the merge slot of a table after its second conflict; `bench/merge_queue.py` compares."""


class RunRequest(Model):
    """The input of the workflow: a pipeline, what it loads, and how."""

    pipeline: Pipeline
    input: RunInput
    starter: str
    asked_by: str = ""
    """The person for whom a backfill started it; empty where the starter is who asked for it."""
    folder: str = ""
    """The working directory in which the run was started."""
    resume: Resume | None = None
    restore: Restore | None = None
    again: bool = False
    """Whether an input that was published before may be published again."""
    publish: bool = True
    """Whether it publishes what passes the audit. Otherwise it ends `checked`, and keeps nothing in any case."""
    one_content_per_path: bool = False
    """Whether the run refuses a file whose path main holds with other content: its landing zone decides about it."""
    order: LoadOrder = LoadOrder()
    """How old its rows are, so that they do not take the place of younger ones."""
    target: str = ""
    """The branch that it publishes to, where that is not main: one on which a backfill collects its partitions."""
    policy: Policy = Field(default_factory=Policy)
    search_attributes: bool = False
    """Whether the server knows Sluice's search attributes."""
    guarantee: str = ""
    """What a worker answered before the start that its publish guarantees; empty where none was asked."""
    revision: int = Field(default=1, ge=1)
    """Which revision of the workflow the run follows to its end, on every worker. `start_run` names the newest. A
    request that names none follows the first, so that a later replay takes the same path."""
    signed_start: SignedStart | None = None
    """The signature of who started the run, where this person has a key."""
    lineage_parent: LineageParent | None = None
    """The OpenLineage run that started this one, if it is known."""

    def start_statement(self, workflow_id: str) -> StartStatement:
        """Return what is signed of the start of this run."""
        continued = self.resume or self.restore
        return StartStatement(
            workflow_id=workflow_id,
            pipeline_digest=self.pipeline.digest,
            input_digest=self.input.digest,
            continues=hashlib.sha256(continued.model_dump_json().encode()).hexdigest() if continued else "",
        )


class Notification(Model):
    """Input of `notify`: a run ended, or waits for approval."""

    result: "RunResult"
    waiting_until: str = ""
    """When the wait for approval ends, in ISO 8601; empty for a run that ended."""


class RecordRunInput(Model):
    """Input of `record_run`: store the report and the audit results of a run that ended."""

    run_ref: RunRef
    result: "RunResult"
    catalog_id: str | None = None
    head: str = ""
    """The hash of the branch whose verdicts the report store holds, also of an audit that did not finish."""
    ended_at: str


class Conflict(Model):
    """A conflict: main changed tables that the run changes or reads; and how the run resolved it."""

    tables: list[str]
    """The tables that main had changed."""
    resolved: Literal["rebased", "rewritten"]
    why: str = ""
    """Why it was rewritten, and which tables main only compacted."""


class StageEvent(Model):
    """A run entered a stage."""

    stage: Stage
    at: str
    note: str = ""


class RunResult(Model):
    """The result of a run, or what is known so far. `run_workflow.py --json` prints exactly this."""

    run_id: str
    workflow_id: str
    pipeline: str
    outcome: Outcome | None = None
    reason: str = ""
    cause: Cause | None = None
    branch: str | None = None
    """The quarantined branch; while the run goes on, the branch of the attempt."""
    audited_hash: str | None = None
    """The hash of the branch that the present attempt's finished audit is about; empty before."""
    guarantee: str = ""
    """What holds of its publish when a server crashes in its middle; empty where that is not known yet."""
    main_before: str | None = None
    main_after: str | None = None
    publish: PublishOptions = PublishOptions()
    """What the merge commit says beside its certificate; an empty message means the default one."""
    input: SelectedInput | None = None
    """Which files the present attempt loads, in numbers, and which it left out."""
    types: GuessedTypes = NO_TYPES
    """The types of the columns of its files that neither the pipeline nor the table types."""
    tables: dict[str, TableChange] = Field(default_factory=dict)
    summary: ChangeSummary | None = None
    """The totals over these tables; None while nothing is written."""
    checks: list[CheckResult] = Field(default_factory=list)
    waived: list[WaivedCheck] = Field(default_factory=list)
    """The failed checks that are waived, and by whom, until when and why. Their verdicts stay `fail`."""
    bad_rows: dict[str, int] = Field(default_factory=dict)
    """By table, the rows that broke a check and went to its quarantine table in the same merge."""
    released: str = ""
    """The run whose quarantine this one releases or repairs; empty if it does neither."""
    repaired: dict[str, RowNumbers] = Field(default_factory=dict)
    """By table, the rows that the SQL of a repair changed, where they could be compared."""
    broken_checks: dict[str, dict[str, int]] = Field(default_factory=dict)
    """By table, how many of these rows broke each check."""
    conflicts: list[Conflict] = Field(default_factory=list)
    """Each conflict with main, the latest last."""
    approval: ApprovalRecord | None = None
    report: str | None = None
    """The location of the whole report of a run that ended, as JSON."""
    registrations: list[Registration] = Field(default_factory=list)
    """How the registrations at targets stood when the report was made; they go on after the run."""
    attempts: int = 0
    lost_attempts: int = 0
    """How many of them were lost with their workers or services, and do not count in the pipeline's `attempts`."""
    timings: dict[str, float] = Field(default_factory=dict)
    """Seconds by stage, all attempts together, and `total`."""


class RunStatus(Model):
    """The answer to the query `status`."""

    stage: Stage
    events: list[StageEvent]
    result: RunResult
    audit_digest: str = ""
    deadline: str = ""
    """When the wait for approval ends, in ISO 8601, while it lasts."""
