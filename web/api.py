"""The API about runs: their status, the rows that they change, and decisions about them."""

from typing import Annotated, Any, Literal

from fastapi import HTTPException, Path, Query, Request
from pydantic import ConfigDict, Field

from runtime.approval.shown_report import check_named_report, shown_report
from runtime.run.find_run import OUTCOMES, RUNNING, RunFilter, list_runs
from runtime.run.listed_run import listed_run
from runtime.run.reported_run import report_run
from runtime.waiting import wait_for_end
from sluice.approval.decisions import NAME_LIMIT, Decision
from sluice.approval.signatures import signed_text
from sluice.approval.waivers import REASON_LIMIT
from sluice.base_model import StrictModel
from sluice.contracts.run import ReportedRun, RunStatus
from sluice.contracts.table_diffs import MAX_ROWS, DiffTablesResult
from sluice.errors import InvalidPipeline
from sluice.roles import rows_refusal
from web.api_router import LONGEST, Wait, api_router, errors, while_connected
from web.approval.deciding import LONGEST_STATEMENT, StatedDecision, decide, prepare_decision, with_signed_text
from web.form import CONFLICT
from web.page import ThePage
from web.run.diff import read_diff
from web.run.hidden_rows import without_samples
from web.run.views import known_run, named_run

_MOST_WAIVED = 1_000
router = api_router("runs")
RunName = Annotated[str, Path(max_length=LONGEST, description="An id of a run, or a pipeline: its latest run.")]
Name = Annotated[str, Query(max_length=LONGEST)]


class RunEntry(StrictModel):
    """A run in a list."""

    workflow_id: str
    run_id: str
    pipeline: str
    state: str
    outcome: str | None
    started: str
    closed: str | None
    tables: list[str]
    summary: str


class RunEntries(StrictModel):
    """Runs, newest first."""

    runs: list[RunEntry]


class DecisionRequest(StrictModel):
    """A decision about a run that waits for approval."""

    model_config = ConfigDict(defer_build=False)  # FastAPI silences a warning of Pydantic only while it adds a route

    decision: Literal["approve", "reject"]
    report: str = Field(
        max_length=LONGEST, description="The report that the person saw: HASH or HASH:DIGEST, as `status` shows it."
    )
    by: str = Field(
        default="",
        max_length=NAME_LIMIT,
        description="The person who decides; by default the person of the request. Behind a proxy, only this person.",
    )
    reason: str = Field(default="", max_length=REASON_LIMIT)
    waive: list[Annotated[str, Field(max_length=LONGEST)]] = Field(
        default_factory=list, max_length=_MOST_WAIVED, description="Failed checks to waive, named as in the report."
    )
    until: str = Field(
        default="", max_length=LONGEST, description="End of the waivers: a date, or a time with its offset."
    )

    @property
    def stated(self) -> StatedDecision:
        """The decision, without a signature."""
        return StatedDecision(self.decision == "approve", self.by, self.reason, self.waive, self.until)

    def check(self, status: RunStatus) -> None:
        """Check that the run waits with the named report.

        Raises:
            InvalidPipeline: it waits with another one.
        """
        check_named_report(self.report, shown_report(status.result))


class SignedDecisionRequest(DecisionRequest):
    """A decision, with the signature of the person where approvers have keys."""

    statement: str = Field(
        default="",
        max_length=LONGEST_STATEMENT,
        description="The text that the person signed, as `/statement` gives it.",
    )
    signature: str = Field(
        default="", max_length=LONGEST, description="Ed25519 signature of the bytes of the text, in Base64."
    )


class Statement(StrictModel):
    """The text that a person signs to make a decision."""

    statement: str


@router.get("/runs")
async def get_runs(
    page: ThePage,
    pipeline: Name = "",
    table: Name = "",
    state: Annotated[str, Query(max_length=LONGEST, json_schema_extra={"enum": ["", RUNNING, *OUTCOMES]})] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> RunEntries:
    """List runs, newest first."""
    executions = await list_runs(page.client, limit, RunFilter(pipeline, table, state))
    entries = []
    for each in [await listed_run(run) for run in executions]:
        fields: dict[str, Any] = {name: value for name, value in vars(each).items() if name in RunEntry.model_fields}
        fields["started"] = each.started.isoformat(timespec="seconds")
        fields["closed"] = each.closed.isoformat(timespec="seconds") if each.closed else None
        entries.append(RunEntry(**fields))
    return RunEntries(runs=entries)


@router.get("/runs/{name}", responses=errors(404))
async def get_run(request: Request, page: ThePage, name: RunName, wait: Wait = 0) -> ReportedRun:
    """Return the status of a run, or its result. The name is an id, or a pipeline, which means its latest run.

    With `wait`, the answer comes when the run has ended, or with its present status when the time is over.
    Without the role that `show_rows` of the pipeline names, the samples of the checks are empty.
    """
    lookup = await named_run(page, name)
    if wait and not lookup.ended:
        await while_connected(request, wait_for_end(lookup.handle, wait))
        lookup = await known_run(page, lookup.handle.id, lookup.handle.run_id or "")
    reported = await report_run(page.client, lookup)
    started_with = await page.views.request(await listed_run(lookup.description))
    hidden = rows_refusal(started_with.pipeline.show_rows if started_with else None, page.visitor.role)
    return without_samples(reported) if hidden else reported


@router.get("/runs/{name}/diff", responses=errors(404))
async def get_diff(
    page: ThePage,
    name: RunName,
    table: Name = "",
    key: Name = "",
    rows: Annotated[int, Query(ge=0, le=MAX_ROWS)] = 10,
) -> DiffTablesResult:
    """Return the rows that a run changes, as `diff --json` prints them."""
    return await read_diff(page, name, table, key, rows)


@router.post("/runs/{name}/decision", responses=errors(404, 409))
async def post_decision(page: ThePage, name: RunName, request: SignedDecisionRequest) -> Decision:
    """Decide about a run that waits for approval. A repeated request of one person is refused, and changes nothing."""
    lookup = await named_run(page, name)
    try:
        run_id = lookup.handle.run_id or ""
        stated = with_signed_text(request.stated, request.statement, request.signature, run_id)
        return await decide(page, lookup, stated, request.check)
    except InvalidPipeline as error:
        raise HTTPException(CONFLICT, str(error)) from error


@router.post("/runs/{name}/statement", responses=errors(404, 409))
async def post_statement(page: ThePage, name: RunName, request: DecisionRequest) -> Statement:
    """Return the text that the person signs to make a decision. Nothing is decided yet.

    Send the decision again with this text and its signature. The key of the person stays with the person.
    """
    lookup = await named_run(page, name)
    try:
        decision = await prepare_decision(page, lookup, request.stated, request.check)
    except InvalidPipeline as error:
        raise HTTPException(CONFLICT, str(error)) from error
    return Statement(statement=signed_text(decision, lookup.handle.run_id or "").decode())
