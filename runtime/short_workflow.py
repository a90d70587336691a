"""Running a short workflow that a person waits for: its result, or one clear error within seconds."""

import asyncio
import uuid
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError, TerminatedError
from temporalio.exceptions import TimeoutError as TemporalTimeoutError
from temporalio.service import RPCError, RPCStatusCode

from sluice import errors
from sluice.base_model import Model
from sluice.contracts.lake_queries import LakeQueryInput, LakeQueryRequest
from sluice.errors import ServiceUnavailable, SluiceError
from sluice.settings import Settings
from workflows.lake.lake_query import LakeQuery

_NO_WORKER = 10.0
"""Seconds after which a workflow that no worker has started to run is given up."""
TIME_LIMIT = timedelta(minutes=5)
"""How long a short workflow may take."""
_TERMINATION = 2.0
"""Seconds that an interrupted command waits until its query is terminated."""
_STARTED = 3
"""The number of events that a workflow has in its history once a worker has taken it."""
_TERMINATED_UNSTARTED = 3
"""The most events of a workflow that was terminated before a worker took it: started, scheduled, terminated."""

_Result = TypeVar("_Result", bound=Model)


async def query_lake(client: Client, settings: Settings, query: LakeQueryInput, result_type: type[_Result]) -> _Result:
    """Ask a worker something about the lake; `RESULTS` has the type of the result.

    Raises:
        SluiceError: what the activity raised, as the domain's error.
        ServiceUnavailable: no worker, or the catalog does not answer.
    """
    request = LakeQueryRequest(query=query)
    result = await execute_short_workflow(client, settings, LakeQuery.run, request, query.kind, read_only=True)
    return result_type.model_validate(result)


async def execute_short_workflow(
    client: Client, settings: Settings, run: Any, argument: Model, name: str, *, read_only: bool = False
) -> Any:
    """Start a workflow and wait for its result; end it if no worker takes it.

    Args:
        name: what its id begins with.
        read_only: whether it changes nothing, so that it is ended when the command is interrupted.

    Raises:
        SluiceError: what an activity raised, as the domain's error.
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
        await asyncio.wait([result], timeout=_NO_WORKER)
        if not result.done() and (await handle.describe()).history_length < _STARTED:
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


async def _raise_if_terminated(handle: WorkflowHandle[Any, Any], settings: Settings, *, read_only: bool) -> None:
    """Raise, unless the workflow ended before it could be terminated: then there is a result.

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
            "one: start it with `make up` or `python worker.py`"
        )
    if read_only:
        raise ServiceUnavailable("a worker started on the query just when it was given up: run the command again")
    raise ServiceUnavailable(
        f"the outcome is not known: a worker started on the workflow {handle.id} just when it was given up. "
        "Look at `quarantine list`, or at the workflow in the Temporal Web UI, before you repeat the command"
    )


async def _terminate(handle: WorkflowHandle[Any, Any], reason: str) -> None:
    try:
        await handle.terminate(reason)
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise


def _domain_error(failure: WorkflowFailureError) -> SluiceError:
    """Return the error of an activity as the class of the domain that it was raised as."""
    cause: BaseException | None = failure.cause
    while cause is not None and cause.__cause__ is not None and not isinstance(cause, ApplicationError):
        cause = cause.__cause__
    if isinstance(cause, ApplicationError):
        cls = getattr(errors, cause.type or "", SluiceError)
        return cls(cause.message) if issubclass(cls, SluiceError) else SluiceError(cause.message)
    if isinstance(cause, TemporalTimeoutError | TerminatedError):
        return ServiceUnavailable(f"there was no result in time ({cause}): see the worker's log")
    return SluiceError(str(cause))
