"""Views of runs: home, the list of runs, and one run."""

import asyncio
import base64
import binascii
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import HTMLResponse
from temporalio.client import WorkflowExecution
from temporalio.service import RPCError, RPCStatusCode

from runtime.run.find_run import OUTCOMES, RUNNING, RunLookup, describe_run, find_run
from runtime.run.listed_run import listed_run
from sluice.errors import InvalidPipeline
from web.approval.signing import view_signing
from web.approval.waiting import awaited_decision
from web.audit.verdicts import count_verdict_looks
from web.page import Page, ThePage
from web.run.again_view import view_again
from web.run.board import MOST_ENDED, RunningRun
from web.run.changes import table_numbers
from web.run.last_day import last_day
from web.run.shown_filter import TheShownFilter

router = APIRouter(include_in_schema=False)
_PER_PAGE = 50
_LONGEST_KEY = 2_000
_NO_KEY = "`after` is not a key of this list: begin again at /runs"


@router.get("/")
async def home(page: ThePage) -> HTMLResponse:
    """Show what waits for a person, what runs, and what ended."""
    snapshot = await page.board.read()
    attention = await page.attention.read()
    return page.render(
        "home.html",
        "Home",
        waiting=[await _card(page, each) for each in snapshot.waiting],
        under_way=snapshot.under_way,
        day=last_day(snapshot.ended, snapshot.read_at),
        shown_of_day=MOST_ENDED if len(snapshot.ended) == MOST_ENDED else None,
        attention=attention,
        now=snapshot.read_at,
        outcomes=OUTCOMES,
    )


async def _card(page: Page, each: RunningRun) -> dict[str, object]:
    assert each.status is not None
    awaited = awaited_decision(each.status, page.visitor.name)
    return {
        "run": each.run,
        "status": each.status,
        "tables": table_numbers(each.status.result),
        "verdicts": count_verdict_looks(each.status.result.checks),
        "starter": await page.views.starter(each.run),
        "awaited": awaited,
        "signing": view_signing(page, each.status.result, awaited),
    }


@router.get("/runs")
async def runs(
    page: ThePage,
    wanted: TheShownFilter,
    after: Annotated[str, Query(max_length=_LONGEST_KEY)] = "",
) -> HTMLResponse:
    """List runs, newest first, filtered by the address."""
    query = wanted.run_filter.query
    listed = page.client.list_workflows(query, page_size=_PER_PAGE, next_page_token=_token(after))
    try:
        await listed.fetch_next_page()
    except RPCError as error:
        if error.status == RPCStatusCode.INVALID_ARGUMENT and after:
            raise InvalidPipeline(_NO_KEY) from error
        raise
    executions: list[WorkflowExecution] = list(listed.current_page or [])
    following = listed.next_page_token
    shown = [await listed_run(each) for each in executions]
    reasons = await asyncio.gather(*(page.views.why(*each) for each in zip(executions, shown, strict=True)))
    return page.render(
        "runs.html",
        "Runs",
        runs=list(zip(shown, reasons, strict=True)),
        wanted=wanted,
        states=[RUNNING, *OUTCOMES],
        stages=await _stages(page, executions),
        following=base64.urlsafe_b64encode(following).decode() if following and len(executions) == _PER_PAGE else "",
        is_first=not after,
    )


async def _stages(page: Page, executions: Sequence[WorkflowExecution]) -> dict[str, str]:
    """Return the stages of the runs that are under way, by run id, as far as the home page knows them."""
    if all(each.close_time for each in executions):
        return {}
    snapshot = await page.board.read()
    return {each.run.run_id: each.status.stage for each in (*snapshot.waiting, *snapshot.under_way) if each.status}


def _token(key: str) -> bytes | None:
    try:
        return base64.b64decode(key.encode(), altchars=b"-_", validate=True) if key else None
    except (binascii.Error, ValueError) as error:
        raise InvalidPipeline(_NO_KEY) from error


@router.get("/runs/{name}")
async def latest_run(page: ThePage, name: str) -> HTMLResponse:
    """Show the run of an id, or the latest run of a pipeline."""
    return await show_run(page, await named_run(page, name))


@router.get("/runs/{workflow_id}/{run_id}")
async def run(page: ThePage, workflow_id: str, run_id: str) -> HTMLResponse:
    """Show one run."""
    return await show_run(page, await known_run(page, workflow_id, run_id))


async def known_run(page: Page, workflow_id: str, run_id: str) -> RunLookup:
    """Return a run by its two ids.

    Raises:
        HTTPException: there is no such run.
    """
    lookup = await describe_run(page.client, workflow_id, run_id)
    if lookup is None or lookup.description.workflow_type != "WriteAuditPublish":
        raise HTTPException(404, f"There is no run {workflow_id} with the id {run_id}, or Temporal no longer has it.")
    return lookup


async def named_run(page: Page, name: str) -> RunLookup:
    """Return a run by one of its ids, or the latest run of a pipeline by its name.

    Raises:
        HTTPException: there is no such run.
    """
    try:
        return await find_run(page.client, name)
    except InvalidPipeline as error:
        raise HTTPException(404, f"There is no run {name[:100]}.") from error


async def show_run(page: Page, lookup: RunLookup, status: int = 200, notice: str = "") -> HTMLResponse:
    """Return the page of a run.

    Args:
        status: HTTP status of the response.
        notice: message to the person, above everything else.
    """
    view = await page.views.read(lookup, page.visitor)
    link = page.web_ui(view.run.workflow_id, view.run.run_id)
    lines = await page.history.lines([] if view.silent else view.verdicts.tables)
    again = await view_again(page, view.run, view.result)
    shown = {"view": view, "lines": lines, "again": again, "signing": view_signing(page, view.result, view.awaited)}
    return page.render("run.html", "Runs", status, web_ui=link, notice=notice, **shown)
