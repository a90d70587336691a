"""API for programs: runs, the rows that they change, and decisions.

OpenAPI describes it at /api/openapi.json.
"""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query
from pydantic import ConfigDict, Field

from runtime.approval.shown_report import check_named_report, shown_report
from runtime.run.find_run import RunFilter, list_runs
from runtime.run.listed_run import listed_run
from runtime.run.reported_run import report_run
from sluice.approval.decisions import Decision
from sluice.base_model import StrictModel
from sluice.contracts.run import ReportedRun
from sluice.contracts.table_diffs import MAX_ROWS, DiffTablesResult
from sluice.errors import InvalidPipeline
from sluice.roles import rows_refusal
from web.approval.deciding import StatedDecision, decide
from web.form import CONFLICT
from web.page import ThePage
from web.run.diff import read_diff
from web.run.hidden_rows import without_samples
from web.run.views import named_run

router = APIRouter(prefix="/api", tags=["runs"])


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
    report: str = Field(description="The report that the person saw: HASH or HASH:DIGEST, as `status` shows it.")
    by: str = Field(
        default="",
        description="The person who decides; by default the person of the request. Behind a proxy, only this person.",
    )
    reason: str = ""
    waive: list[str] = Field(default_factory=list, description="Failed checks to waive, named as in the report.")
    until: str = Field(default="", description="End of the waivers: a date, or a time with its offset.")


@router.get("/runs")
async def get_runs(
    page: ThePage,
    pipeline: str = "",
    table: str = "",
    state: str = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> RunEntries:
    """List runs, newest first."""
    executions = await list_runs(page.client, limit, RunFilter(pipeline, table, state))
    entries = []
    for each in [await listed_run(run) for run in executions]:
        fields: dict[str, Any] = {**vars(each), "started": each.started.isoformat(timespec="seconds")}
        fields["closed"] = each.closed.isoformat(timespec="seconds") if each.closed else None
        entries.append(RunEntry(**fields))
    return RunEntries(runs=entries)


@router.get("/runs/{name}")
async def get_run(page: ThePage, name: str) -> ReportedRun:
    """Return the status of a run, or its result. The name is an id, or a pipeline, which means its latest run.

    Without the role that `show_rows` of the pipeline names, the samples of the checks are empty.
    """
    lookup = await named_run(page, name)
    reported = await report_run(page.client, lookup)
    request = await page.views.request(await listed_run(lookup.description))
    hidden = rows_refusal(request.pipeline.show_rows if request else None, page.visitor.role)
    return without_samples(reported) if hidden else reported


@router.get("/runs/{name}/diff")
async def get_diff(
    page: ThePage,
    name: str,
    table: str = "",
    key: str = "",
    rows: Annotated[int, Query(ge=0, le=MAX_ROWS)] = 10,
) -> DiffTablesResult:
    """Return the rows that a run changes, as `diff --json` prints them."""
    return await read_diff(page, name, table, key, rows)


@router.post("/runs/{name}/decision")
async def post_decision(page: ThePage, name: str, request: DecisionRequest) -> Decision:
    """Decide about a run that waits for approval. A repeated request of one person is refused, and changes nothing."""
    lookup = await named_run(page, name)
    try:
        return await decide(
            page,
            lookup,
            StatedDecision(request.decision == "approve", request.by, request.reason, request.waive, request.until),
            lambda status: check_named_report(request.report, shown_report(status.result)),
        )
    except InvalidPipeline as error:
        raise HTTPException(CONFLICT, str(error)) from error
