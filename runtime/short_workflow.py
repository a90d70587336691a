"""Run a short workflow for a waiting person: return its result, or raise one clear error within seconds."""

import asyncio
import uuid
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError, TerminatedError
from temporalio.exceptions import TimeoutError as TemporalTimeoutError
from temporalio.service import RPCError, RPCStatusCode

from runtime.missing_worker import START_A_WORKER
from runtime.worker_answer import waiting_for_worker
from sluice.base_model import WireMessage
from sluice.contracts.lake_query import LAKE_QUERY, LakeQueryMessage, SentLakeQuery
from sluice.errors import ServiceUnavailable, SluiceError, error_class
from sluice.setting_groups import InstallationSettings

TIME_LIMIT = timedelta(minutes=5)
"""Time limit of a short workflow."""
_TERMINATION = 2.0
"""Time that an interrupted command waits for the termination of its query, in seconds."""
STARTED = 3
"""Minimum number of events in the history of a workflow that a worker has taken."""
_TERMINATED_UNSTARTED = 3
"""Maximum number of events of a workflow that was terminated before a worker took it: started, scheduled,
terminated."""

_Result = TypeVar("_Result", bound=WireMessage)


async def query_lake(
    client: Client, settings: InstallationSettings, query: LakeQueryMessage, result_type: type[_Result]
) -> _Result:
    """Let a worker answer a query about the lake.

    Args:
        result_type: the type of the result, which `RESULTS` in `sluice/contracts/lake_queries.py` names.

    Raises:
        SluiceError: the activity's error, as the domain's error.
        ServiceUnavailable: no worker answers, or the catalog does not.
    """
    request = SentLakeQuery(query=query)
    result = await execute_short_workflow(client, settings, LAKE_QUERY, request, query.kind, read_only=True)
    return result_type.model_validate(result)


async def execute_short_workflow(
    client: Client,
    settings: InstallationSettings,
    run: Any,
    argument: WireMessage,
    name: str,
    *,
    read_only: bool = False,
) -> Any:
    """Start a workflow and wait for its result. Terminate it if no worker takes it within SLUICE_WORKER_WAIT.

    Args:
        name: beginning of its workflow id.
        read_only: True if the workflow changes nothing, so that an interrupted command may terminate it.

    Raises:
        SluiceError: an activity's error, as the domain's error.
        ServiceUnavailable: no worker takes it, there was no result in time, or its outcome is not known.
    """
    handle = await client.start_workflow(
        run,
        argument,
        id=f"{name.replace('_', '-')}-{uuid.uuid4().hex[:12]}",
        task_queue=settings.sluice_task_queue,
        execution_timeout=TIME_LIMIT,
    )
    result = asyncio.create_task(handle.result())
    try:
        with waiting_for_worker():
            await asyncio.wait([result], timeout=settings.sluice_worker_wait)
            if not result.done() and (await handle.describe()).history_length < STARTED:
                await _terminate(handle, "no worker took it")
                await _raise_if_terminated(handle, settings, read_only=read_only)
            return await result
    except asyncio.CancelledError:
        if read_only:
            with suppress(RPCError, asyncio.TimeoutError):
                await asyncio.wait_for(_terminate(handle, "the command was interrupted"), _TERMINATION)
        raise
    except WorkflowFailureError as failure:
        raise _domain_error(failure) from failure
    finally:
        result.cancel()


async def _raise_if_terminated(
    handle: WorkflowHandle[Any, Any], settings: InstallationSettings, *, read_only: bool
) -> None:
    """Raise if the workflow was terminated. If it ended before that, there is a result.

    A worker may have taken the workflow just before. Its activity may then run, although the workflow is terminated.

    Raises:
        ServiceUnavailable: no worker took it, or one did and the outcome is not known.
    """
    description = await handle.describe()
    if description.status != WorkflowExecutionStatus.TERMINATED:
        return
    if description.history_length <= _TERMINATED_UNSTARTED:
        raise ServiceUnavailable(
            f"no worker takes work from the task queue {settings.sluice_task_queue!r}, and this command needs "
            f"one: {START_A_WORKER}"
        )
    if read_only:
        raise ServiceUnavailable("the query timed out just as a worker began it: run the command again")
    raise ServiceUnavailable(
        f"the outcome is not known: the workflow {handle.id} timed out just as a worker began it. "
        "Look at `quarantine list`, or at the workflow in the Temporal Web UI, before you repeat the command"
    )


async def _terminate(handle: WorkflowHandle[Any, Any], reason: str) -> None:
    try:
        await handle.terminate(reason)
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise


def _domain_error(failure: WorkflowFailureError) -> SluiceError:
    """Return the error of an activity, as the domain class that the activity raised."""
    cause: BaseException | None = failure.cause
    while cause is not None and cause.__cause__ is not None and not isinstance(cause, ApplicationError):
        cause = cause.__cause__
    if isinstance(cause, ApplicationError):
        return error_class(cause.type or "")(cause.message)
    if isinstance(cause, TemporalTimeoutError | TerminatedError):
        return ServiceUnavailable(f"there was no result in time ({cause}): see the worker's log")
    return SluiceError(str(cause))
