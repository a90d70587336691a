"""A run as Temporal lists it, without the answer of a worker."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus

from runtime.run.find_run import find_handle, query_status
from sluice.contracts.run import RunStatus
from sluice.errors import BadEnvironment
from workflows.search_attributes import OUTCOME, PIPELINE, ROLLS_BACK_MEMO, SUMMARY_MEMO, TABLE

_ANSWER_WITHIN = 2.0
"""Time that a worker has to report the status of a run, in seconds."""
_ENCRYPTED = (BadEnvironment, ValueError)
"""Errors of the codec without a key, or with another one."""
_AT_ONCE = 8
"""Maximum number of runs whose status is queried at the same time."""


@dataclass(frozen=True)
class ListedRun:
    """A run, as Temporal lists it."""

    workflow_id: str
    run_id: str
    pipeline: str
    state: str
    """State of the workflow in Temporal: `running`, `completed`, `failed` and so on."""
    outcome: str | None
    started: datetime
    closed: datetime | None
    tables: list[str]
    summary: str
    """Work of the run, in one line; empty if it is encrypted with an unknown key."""
    rolls_back: Sequence[str] = ()
    """Ids of the runs that it rolled back."""

    @property
    def is_running(self) -> bool:
        """True if the run has not ended."""
        return self.closed is None

    @property
    def elapsed(self) -> timedelta:
        """Time from its start until its end, or until now."""
        return (self.closed or datetime.now(timezone.utc)) - self.started


async def listed_run(execution: WorkflowExecution) -> ListedRun:
    """Return a run from its description by Temporal."""
    attributes = execution.search_attributes
    first = {name: str(values[0]) for name, values in attributes.items() if values}
    memo = await _memo(execution)
    taken_back = memo.get(ROLLS_BACK_MEMO)
    return ListedRun(
        workflow_id=execution.id,
        run_id=execution.run_id,
        pipeline=first.get(PIPELINE.name, execution.id.rsplit("-", 1)[0]),
        state=execution.status.name.lower() if execution.status else "",
        outcome=first.get(OUTCOME.name),
        started=execution.start_time,
        closed=execution.close_time,
        tables=[str(each) for each in attributes.get(TABLE.name, [])],
        summary=str(memo.get(SUMMARY_MEMO, "")),
        rolls_back=[str(each) for each in taken_back] if isinstance(taken_back, list) else (),
    )


async def query_statuses(client: Client, runs: Sequence[WorkflowExecution]) -> list[RunStatus | None]:
    """Return the status of each run that is under way; None for a run that has ended, or if no worker answers."""
    room = asyncio.Semaphore(_AT_ONCE)
    return await asyncio.gather(*(_status(client, run, room) for run in runs))


async def _status(client: Client, run: WorkflowExecution, room: asyncio.Semaphore) -> RunStatus | None:
    if run.status != WorkflowExecutionStatus.RUNNING:
        return None
    async with room:
        try:
            return await asyncio.wait_for(query_status(find_handle(client, run)), _ANSWER_WITHIN)
        except (asyncio.TimeoutError, *_ENCRYPTED):
            return None


async def _memo(execution: WorkflowExecution) -> Mapping[str, Any]:
    try:
        return await execution.memo()
    except Exception:  # each codec has its own errors; the list is shown without the encrypted parts
        return {}
