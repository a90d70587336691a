"""Finding runs, and reading from Temporal how they stand, whether a worker is there or not."""

import re
from dataclasses import dataclass

from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from sluice.contracts.run import RunRequest, RunResult, RunStatus
from sluice.errors import InvalidPipeline
from workflows.write_audit_publish import RESULT_MEMO, WriteAuditPublish

_OURS = 'WorkflowType = "WriteAuditPublish"'
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,200}")

Handle = WorkflowHandle[WriteAuditPublish, RunResult]


@dataclass(frozen=True)
class RunLookup:
    """A run that was asked for."""

    handle: Handle
    description: WorkflowExecutionDescription

    @property
    def ended(self) -> bool:
        """Whether it ended, in whatever way."""
        return self.description.status != WorkflowExecutionStatus.RUNNING


async def find_run(client: Client, named: str) -> RunLookup:
    """Find a run by its workflow id, its run id, or its pipeline's name, which means the latest run of it.

    Raises:
        InvalidPipeline: there is no such run.
    """
    if not _PLAIN.fullmatch(named):
        raise InvalidPipeline(f"{named!r} is no name of a run: `list` shows them")
    found = await _described(client, named, None)
    if found is None:
        query = f'{_OURS} AND (RunId = "{named}" OR WorkflowId STARTS_WITH "{named}-")'
        async for execution in client.list_workflows(query, limit=50):
            if execution.run_id == named or re.fullmatch(re.escape(named) + "-[0-9a-f]{12}", execution.id):
                found = await _described(client, execution.id, execution.run_id)
                break
    if found is None:
        raise InvalidPipeline(f"there is no run {named!r}: `list` shows those that there are")
    return found


async def _described(client: Client, workflow_id: str, run_id: str | None) -> RunLookup | None:
    handle = client.get_workflow_handle_for(WriteAuditPublish.run, workflow_id, run_id=run_id)
    try:
        description = await handle.describe()
    except RPCError as error:
        if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT):
            return None
        raise
    pinned = client.get_workflow_handle_for(WriteAuditPublish.run, workflow_id, run_id=description.run_id)
    return RunLookup(pinned, description)


async def request_of(client: Client, workflow_id: str, run_id: str) -> RunRequest | None:
    """Return what started a run, or None where Temporal has forgotten it."""
    try:
        history = await client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history()
    except RPCError as error:
        if error.status in (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT):
            return None
        raise
    payloads = history.events[0].workflow_execution_started_event_attributes.input.payloads
    found: list[RunRequest] = await client.data_converter.decode(payloads, [RunRequest])
    return found[0]


async def recent_runs(client: Client, limit: int) -> list[WorkflowExecution]:
    """Return the latest runs, the newest first."""
    return [execution async for execution in client.list_workflows(_OURS, limit=limit)]


async def status_of(handle: Handle) -> RunStatus | None:
    """Ask the run itself how it stands; None where no worker answers for it."""
    try:
        return await handle.query(WriteAuditPublish.status)
    except (WorkflowQueryFailedError, RPCError):
        return None


async def result_of(client: Client, run: WorkflowExecution) -> RunResult | None:
    """Return the result of a run that ended, from where each kind of ending leaves it, or None."""
    handle = client.get_workflow_handle_for(WriteAuditPublish.run, run.id, run_id=run.run_id)
    try:
        return await handle.result(follow_runs=False)
    except WorkflowFailureError as failure:
        cause = failure.cause
        if isinstance(cause, ApplicationError) and cause.type == "RunFailed" and cause.details:
            return RunResult.model_validate(cause.details[0])
        kept = (await run.memo()).get(RESULT_MEMO)
        if kept:
            return RunResult.model_validate(kept)
        outcome = "cancelled" if run.status == WorkflowExecutionStatus.CANCELED else "failed"
        why = str(cause) if run.status == WorkflowExecutionStatus.FAILED else f"the run was {failure.cause!s}"
        return RunResult(
            run_id=run.run_id or "", workflow_id=run.id, pipeline=run.id.rsplit("-", 1)[0],
            outcome=outcome, reason=why, cause="error",
        )  # fmt: skip
