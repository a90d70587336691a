"""Read the request that started a run from its history."""

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from sluice.contracts.run_request import RunRequest


async def read_request(client: Client, workflow_id: str, run_id: str) -> RunRequest | None:
    """Return the request that started a run, or None if Temporal no longer has its history."""
    events = client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history_events(page_size=1)
    try:
        first = await anext(events)  # only the first page: a history may be long
    except RPCError as error:
        if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT):
            return None
        raise
    payloads = first.workflow_execution_started_event_attributes.input.payloads
    request: RunRequest
    (request,) = await client.data_converter.decode(payloads, [RunRequest])
    return request
