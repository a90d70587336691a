"""Everything that the page of a run shows."""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TypeVar

from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError

from runtime.run.find_run import RunLookup, read_result
from runtime.run.job_progress import read_progress
from runtime.run.listed_run import ListedRun, listed_run
from runtime.run.run_request import read_request
from runtime.stuck_workflow import why_stuck
from sluice.command_line import COMMAND
from sluice.contracts.run import RunResult, RunStatus
from sluice.contracts.run_request import RunRequest
from sluice.presentation.changes import describe_kept_guarantee, describe_message, describe_metadata, rows_heading
from sluice.presentation.next_steps import next_steps
from sluice.publishing.retries import describe_attempts
from sluice.roles import rows_refusal
from web.access import Visitor
from web.approval.waiting import AwaitedView, awaited_decision
from web.audit.verdicts import VerdictsView, view_verdicts
from web.run.changes import TableNumbers, table_numbers
from web.run.statuses import Statuses
from web.run.timeline import TimelineEntry, timeline

_MOST_KEPT = 500
"""Maximum number of ended runs that are kept in memory. Nothing about them changes."""
_AT_ONCE = 8
"""Maximum number of results that are read at the same time."""
_LONGEST_REASON = 400
"""Maximum length of a reason in the list of runs, in characters. The page of the run has the whole reason."""
_SUCCESSFUL = ("published", "checked")
"""Outcomes that need no reason."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class RunView:
    """A run, as its page shows it."""

    run: ListedRun
    state: str
    """Stage, or outcome."""
    result: RunResult
    tables: list[TableNumbers]
    verdicts: VerdictsView
    timeline: list[TimelineEntry]
    details: dict[str, str]
    commands: dict[str, str]
    """Next commands for a person, by purpose."""
    awaited: AwaitedView | None
    progress: str
    starter: str
    silent: bool
    """True if the run is under way and no worker answers."""
    why_stuck: str
    """Reason that the worker cannot continue the run; empty if it can, or if no worker has it."""

    @property
    def changes_heading(self) -> str:
        """Heading of the changes: what changes, what changed, or what main did not get."""
        outcome = self.result.outcome
        return {None: "What changes", "published": "What changed", "quarantined": "What was kept out"}.get(
            outcome, "What was not published"
        )

    @property
    def has_actions(self) -> bool:
        """True if the run has ended in a state that a person may change: published, or quarantined."""
        is_kept = self.result.outcome == "quarantined" and bool(self.result.branch)
        return is_kept or self.result.outcome == "published"

    @property
    def rows_heading(self) -> str:
        """Heading of the number of rows of a table."""
        return rows_heading(self.result)


class RunViews:
    """Reads runs for their pages. Keeps ended runs, which do not change."""

    def __init__(self, client: Client, statuses: Statuses) -> None:
        self._client, self._statuses = client, statuses
        self._requests: dict[str, RunRequest] = {}
        self._results: dict[str, RunResult] = {}
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def read(self, lookup: RunLookup, visitor: Visitor) -> RunView:
        """Return the page of a run, as a person sees it.

        Raises:
            RPCError: Temporal does not answer.
        """
        run = await listed_run(lookup.description)
        request = await self.request(run)
        status = await self._statuses.read(lookup)
        if lookup.ended:
            ended = await self.read_result(lookup.description)
            return _view(run, ended or _unknown_result(run), status, request, "", visitor)
        result = status.result if status else _unknown_result(run)
        why = "" if status else await why_stuck(lookup.handle, lookup.description)
        return _view(run, result, status, request, await read_progress(lookup.description), visitor, why)

    async def starter(self, run: ListedRun) -> str:
        """Return who started a run; empty if Temporal no longer has its history."""
        request = await self.request(run)
        return _starter(request) if request else ""

    async def read_result(self, execution: WorkflowExecution) -> RunResult | None:
        """Return the result of an ended run."""
        if execution.run_id not in self._results:
            async with self._room:
                result = await read_result(self._client, execution)
            if result is None:
                return None
            _keep(self._results, execution.run_id, result)
        return self._results[execution.run_id]

    async def why(self, execution: WorkflowExecution, run: ListedRun) -> str:
        """Return the reason of an ended run that did not publish, in one line; empty for any other run."""
        if run.is_running or run.outcome in _SUCCESSFUL:
            return ""
        try:
            result = await self.read_result(execution)
        except RPCError:  # the list has the run, and its history is deleted
            return ""
        reason = " ".join(result.reason.split()) if result else ""
        return reason if len(reason) <= _LONGEST_REASON else reason[: _LONGEST_REASON - 1] + "…"

    async def request(self, run: ListedRun) -> RunRequest | None:
        """Return the request that started a run, or None if Temporal no longer has its history."""
        if run.run_id not in self._requests:
            request = await read_request(self._client, run.workflow_id, run.run_id)
            if request is None:
                return None
            _keep(self._requests, run.run_id, request)
        return self._requests[run.run_id]


def _view(
    run: ListedRun,
    result: RunResult,
    status: RunStatus | None,
    request: RunRequest | None,
    progress: str,
    visitor: Visitor,
    why: str = "",
) -> RunView:
    hidden = rows_refusal(request.pipeline.show_rows if request else None, visitor.role)
    awaited = awaited_decision(status, visitor.name) if status and run.is_running else None
    end = run.closed or datetime.now(timezone.utc)
    return RunView(
        run=run,
        state=result.outcome or run.outcome or (status.stage if status else run.state),
        result=result,
        tables=table_numbers(result),
        verdicts=view_verdicts(result, request, hidden),
        timeline=timeline(status.events, end) if status else [],
        details=_details(result),
        commands=_commands(result),
        awaited=awaited,
        progress=progress,
        starter=_starter(request) if request else "",
        silent=run.is_running and status is None,
        why_stuck=why,
    )


def _keep(kept: dict[str, _T], key: str, value: _T) -> None:
    """Keep a value, and drop the oldest one if there are too many."""
    kept[key] = value
    if len(kept) > _MOST_KEPT:
        del kept[next(iter(kept))]


def _unknown_result(run: ListedRun) -> RunResult:
    return RunResult(run_id=run.run_id, workflow_id=run.workflow_id, pipeline=run.pipeline)


def _starter(request: RunRequest) -> str:
    return f"{request.asked_by} (by {request.starter})" if request.asked_by else request.starter


def _commands(result: RunResult) -> dict[str, str]:
    commands = {"this report in the terminal": f"{COMMAND} status {result.run_id}"}
    return {**commands, **next_steps(result)}


def _details(result: RunResult) -> dict[str, str]:
    """Return what identifies the publication: the certificate in words."""
    details = {
        "Audited hash": result.audited_hash or "",
        "Main before": result.main_before or "",
        "Main after": result.main_after or ("unchanged by this run" if result.outcome else ""),
        "Branch": result.branch or "",
        "Guarantee": describe_kept_guarantee(result),
        "Message": describe_message(result),
        "Metadata": describe_metadata(result),
        "Input": result.input.summary if result.input else "",
        "Attempts": describe_attempts(result.attempts, result.lost_attempts),
        "Report": result.report or "",
    }
    return {name: value for name, value in details.items() if value}
