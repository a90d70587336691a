"""Running and ended backfills, for `list --backfills`."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.service import RPCError

from runtime.backfills.backfills import latest_backfills, read_backfill
from runtime.stuck_workflow import why_stuck
from sluice.contracts.backfill import BackfillStatus
from sluice.errors import BadEnvironment, InvalidPipeline, ServiceUnavailable
from sluice.presentation.backfills import shown_counts
from sluice.setting_groups import InstallationSettings
from workflows.backfills.backfill import Backfill

_AT_ONCE = 8
"""Maximum number of backfills queried at the same time."""
_ANSWER_WITHIN = 5.0
"""Time that a worker has to answer for a backfill, in seconds; after that the list shows no counts."""
_NO_ANSWER = (ServiceUnavailable, InvalidPipeline, BadEnvironment, RPCError, asyncio.TimeoutError, ValueError)
"""Errors that leave a backfill without counts: no worker, Temporal forgot it, or its data has another key."""


@dataclass(frozen=True)
class ListedBackfill:
    """The latest backfill of a pipeline."""

    pipeline: str
    state: str
    """State from Temporal: `running`, `completed`, `canceled` and so on."""
    started: datetime
    """Start time of its present workflow; a backfill with many partitions continues as new."""
    closed: datetime | None
    status: BackfillStatus | None
    """Status of the backfill; None if it cannot be read."""
    why: str = ""
    """Reason that the worker cannot continue the backfill; empty if it can, or if no worker has it."""

    @property
    def is_paused(self) -> bool:
        """True if the backfill runs, and starts no partitions."""
        return self.state == "running" and self.status is not None and bool(self.status.progress.paused)

    @property
    def label(self) -> str:
        """The state as people read it. Temporal spells `cancelled` with one l."""
        return "paused" if self.is_paused else "cancelled" if self.state == "canceled" else self.state


async def list_backfills(client: Client, settings: InstallationSettings, limit: int) -> list[ListedBackfill]:
    """Return the latest backfill of each pipeline of an installation, newest first."""
    room = asyncio.Semaphore(_AT_ONCE)
    latest = list((await latest_backfills(client, settings)).items())[:limit]
    listed = await asyncio.gather(*(_listed(client, settings, name, each, room) for name, each in latest))
    return [each for each in listed if each.status is None or each.status.name == each.pipeline]


async def _listed(
    client: Client, settings: InstallationSettings, pipeline: str, execution: WorkflowExecution, room: asyncio.Semaphore
) -> ListedBackfill:
    async with room:
        status = await _status(client, settings, execution, pipeline)
        why = "" if status else await _why_stuck(client, execution)
    return ListedBackfill(
        pipeline=pipeline,
        state=execution.status.name.lower() if execution.status else "",
        started=execution.start_time,
        closed=execution.close_time,
        status=status,
        why=why,
    )


async def _why_stuck(client: Client, execution: WorkflowExecution) -> str:
    """Return why the worker cannot continue a backfill; empty if it can, or if this cannot be read."""
    handle = client.get_workflow_handle(execution.id, run_id=execution.run_id)
    try:
        return await asyncio.wait_for(_describe_why(handle), _ANSWER_WITHIN)
    except _NO_ANSWER:
        return ""


async def _describe_why(handle: WorkflowHandle[Any, Any]) -> str:
    return await why_stuck(handle, await handle.describe())


async def count_partitions(
    client: Client, settings: InstallationSettings, execution: WorkflowExecution, pipeline: str
) -> tuple[Counter[str], bool] | None:
    """Return the partitions of a backfill by state, and True if it is paused; None if its status cannot be read."""
    status = await _status(client, settings, execution, pipeline)
    if status is None:
        return None
    return shown_counts(status), bool(status.progress.paused)


async def count_of_earlier(client: Client, workflow_id: str, first_run_id: str) -> tuple[Counter[str], bool] | None:
    """Return the partitions by state of a backfill that later ones followed; None if it did not complete.

    Args:
        first_run_id: the first run of its workflow, which may have continued as new.
    """
    handle = client.get_workflow_handle_for(Backfill.run, workflow_id, run_id=first_run_id)
    try:
        return shown_counts(await asyncio.wait_for(handle.result(), _ANSWER_WITHIN)), False
    except (*_NO_ANSWER, WorkflowFailureError):
        return None


async def _status(
    client: Client, settings: InstallationSettings, execution: WorkflowExecution, pipeline: str
) -> BackfillStatus | None:
    """Return the status of a backfill, or None if it cannot be read. A completed backfill needs no worker."""
    try:
        if execution.status == WorkflowExecutionStatus.COMPLETED:
            handle = client.get_workflow_handle_for(Backfill.run, execution.id, run_id=execution.run_id)
            return await asyncio.wait_for(handle.result(follow_runs=False), _ANSWER_WITHIN)
        return await asyncio.wait_for(read_backfill(client, settings, pipeline), _ANSWER_WITHIN)
    except (*_NO_ANSWER, WorkflowFailureError):
        return None
