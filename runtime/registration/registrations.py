"""Current state of a run's registrations, which go on after its report was made."""

import asyncio
from typing import Any

from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
)
from temporalio.service import RPCError

from sluice.contracts.registration import REGISTRATION_QUERY, Registration
from sluice.contracts.run import RunResult

_TIMEOUT = 5.0
"""Time limit for reading one registration, in seconds."""


async def with_registrations_now(client: Client, result: RunResult) -> RunResult:
    """Return a result with the present state of its registrations. An unreadable registration stays unchanged."""
    reading = (_refresh(client, each) for each in result.registrations)
    return result.model_copy(update={"registrations": list(await asyncio.gather(*reading))})


async def _refresh(client: Client, registration: Registration) -> Registration:
    if registration.state != "pending" or not registration.workflow_id:
        return registration
    handle = client.get_workflow_handle(registration.workflow_id, result_type=Registration)
    try:
        return await asyncio.wait_for(_read(handle), _TIMEOUT)
    except WorkflowFailureError as ended:
        return registration.model_copy(update={"state": "failed", "reason": f"its workflow was {ended.cause}"})
    except (RPCError, WorkflowQueryFailedError, asyncio.TimeoutError):
        return registration


async def _read(handle: WorkflowHandle[Any, Registration]) -> Registration:
    if (await handle.describe()).status == WorkflowExecutionStatus.RUNNING:
        current: Registration = await handle.query(REGISTRATION_QUERY, result_type=Registration)
        return current
    return await handle.result(follow_runs=False)
