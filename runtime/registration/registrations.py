"""Current state of a run's registrations, which go on after its report was made."""

import asyncio

from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
)
from temporalio.service import RPCError

from sluice.contracts.registration import Registration
from sluice.contracts.run import RunResult
from workflows.registration.register_publication import RegisterPublication

_TIMEOUT = 5.0
"""Time limit for reading one registration, in seconds."""


async def with_registrations_now(client: Client, result: RunResult) -> RunResult:
    """Return a result with the present state of its registrations. An unreadable registration stays unchanged."""
    reading = (_refresh(client, each) for each in result.registrations)
    return result.model_copy(update={"registrations": list(await asyncio.gather(*reading))})


async def _refresh(client: Client, registration: Registration) -> Registration:
    if registration.state != "pending" or not registration.workflow_id:
        return registration
    handle = client.get_workflow_handle_for(RegisterPublication.run, registration.workflow_id)
    try:
        return await asyncio.wait_for(_read(handle), _TIMEOUT)
    except WorkflowFailureError as ended:
        return registration.model_copy(update={"state": "failed", "reason": f"its workflow was {ended.cause}"})
    except (RPCError, WorkflowQueryFailedError, asyncio.TimeoutError):
        return registration


async def _read(handle: WorkflowHandle[RegisterPublication, Registration]) -> Registration:
    if (await handle.describe()).status == WorkflowExecutionStatus.RUNNING:
        return await handle.query(RegisterPublication.registration)
    return await handle.result(follow_runs=False)
