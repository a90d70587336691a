"""Cancel the runs of a `StartPipeline`, which go on after it was terminated."""

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from sluice.contracts.starting import FindRunEndInput


async def cancel_start(client: Client, workflow_id: str) -> list[str]:
    """Cancel a `StartPipeline`, which then cancels its run. If it has ended, cancel the runs that it started.

    Returns:
        The ids of the cancelled workflows.

    Raises:
        RPCError: Temporal does not answer.
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


async def cancel_started_runs(client: Client, started_by: str, since: str = "") -> list[FindRunEndInput]:
    """Cancel the runs that a workflow started and that are under way; return them.

    Args:
        started_by: the id of the workflow, which may have ended. A run that it started in the last second may be
            missing: Temporal lists workflows a moment after they start.
        since: a time in ISO 8601; runs that ended after it are returned, too.

    Raises:
        RPCError: Temporal does not answer.
    """
    wanted = 'ExecutionStatus = "Running"' + (f' OR CloseTime > "{since}"' if since else "")
    query = f'WorkflowType = "WriteAuditPublish" AND ParentWorkflowId = "{started_by}" AND ({wanted})'
    runs = []
    async for run in client.list_workflows(query):
        if run.status == WorkflowExecutionStatus.RUNNING:
            try:
                await client.get_workflow_handle(run.id, run_id=run.run_id).cancel()
            except RPCError as error:
                if error.status != RPCStatusCode.NOT_FOUND:  # else it has ended meanwhile
                    raise
        runs.append(FindRunEndInput(workflow_id=run.id, run_id=run.run_id))
    return runs
