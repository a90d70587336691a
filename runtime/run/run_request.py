"""Read what started a run or a backfill from its history."""

from typing import TypeVar

from pydantic import BaseModel
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from sluice.contracts.backfill import BACKFILL_WORKFLOW, BackfillInput
from sluice.contracts.run import RUN_WORKFLOW
from sluice.contracts.run_request import RunRequest

_Input = TypeVar("_Input", bound=BaseModel)


async def read_request(client: Client, workflow_id: str, run_id: str | None = None) -> RunRequest | None:
    """Return the request that started a run, or None if Temporal no longer has its history, or it is not a run.

    Args:
        run_id: id of the run; None means the latest run of the workflow id.
    """
    return await _read_input(client, workflow_id, run_id, RUN_WORKFLOW, RunRequest)


async def read_backfill(client: Client, workflow_id: str, run_id: str) -> BackfillInput | None:
    """Return the input of a backfill, or None if Temporal no longer has its history, or it is not a backfill."""
    return await _read_input(client, workflow_id, run_id, BACKFILL_WORKFLOW, BackfillInput)


async def _read_input(
    client: Client, workflow_id: str, run_id: str | None, workflow: str, input_type: type[_Input]
) -> _Input | None:
    events = client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history_events(page_size=1)
    try:
        first = await anext(events)  # only the first page: a history may be long
    except RPCError as error:
        if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT):
            return None
        raise
    started = first.workflow_execution_started_event_attributes
    if started.workflow_type.name != workflow:
        return None
    decoded: _Input
    (decoded,) = await client.data_converter.decode(started.input.payloads, [input_type])
    return decoded
