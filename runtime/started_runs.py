"""Cancelling runs that a `StartPipeline` workflow started: they go on after it was ended by force."""

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from sluice.contracts.starting import FindRunEndInput


async def cancel_start(client: Client, workflow_id: str) -> list[str]:
    """Cancel a `StartPipeline`, which cancels its run; or its run, if it has ended. Return the workflows.

    Raises:
        RPCError: Temporal cannot be asked.
    """
    handle = client.get_workflow_handle(workflow_id)
    try:
        if (await handle.describe()).status == WorkflowExecutionStatus.RUNNING:
            await handle.cancel()
            return [workflow_id]
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
    return [run.workflow_id for run in await cancel_started_runs(client, workflow_id)]


async def cancel_started_runs(client: Client, started_by: str) -> list[FindRunEndInput]:
    """Cancel the runs that a workflow started and that are under way; return them.

    Args:
        started_by: the id of the workflow, which may have ended. A run that it started in the last second may be
            missing: Temporal lists workflows a moment after they start.

    Raises:
        RPCError: Temporal cannot be asked.
    """
    query = f'WorkflowType = "WriteAuditPublish" AND ExecutionStatus = "Running" AND ParentWorkflowId = "{started_by}"'
    runs = []
    async for run in client.list_workflows(query):
        try:
            await client.get_workflow_handle(run.id, run_id=run.run_id).cancel()
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:  # else it has ended meanwhile
                raise
        runs.append(FindRunEndInput(workflow_id=run.id, run_id=run.run_id))
    return runs
