"""Backfills on Temporal: find the backfill of a pipeline, start or join it, and change it while it runs."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

from temporalio.client import (
    Client,
    RPCTimeoutOrCancelledError,
    WorkflowExecution,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from runtime.missing_worker import no_worker
from runtime.run.started_runs import cancel_start
from runtime.short_workflow import execute_short_workflow
from runtime.stuck_workflow import no_answer, refuse_if_stuck
from runtime.worker_answer import waiting_for_worker
from sluice.contracts.backfill import (
    BACKFILL_WORKFLOW,
    AddPartitions,
    BackfillChange,
    BackfillInput,
    BackfillStatus,
    DiscardBackfillInput,
)
from sluice.errors import InvalidPipeline, ServiceUnavailable
from sluice.identifiers import backfill_id, pipeline_name, suggestion
from sluice.setting_groups import InstallationSettings
from workflows.backfills.backfill import Backfill
from workflows.backfills.discard_backfill import DiscardBackfill

ANSWER_WITHIN = 20.0
"""Time that a worker has to answer a command about a backfill, in seconds."""
_MOST_LISTED = 1000
"""Maximum number of workflows read; a backfill that continued as new is several of them."""
_TRIES = 5
_T = TypeVar("_T")

Handle = WorkflowHandle[Backfill, BackfillStatus]


def backfill_handle(client: Client, settings: InstallationSettings, pipeline: str) -> Handle:
    """Return the handle of a pipeline's latest backfill.

    Raises:
        InvalidPipeline: no pipeline can have this name.
    """
    workflow_id = backfill_id(settings.sluice_installation, pipeline_name(pipeline))
    return client.get_workflow_handle_for(Backfill.run, workflow_id)


async def start_backfill(client: Client, settings: InstallationSettings, given: BackfillInput) -> tuple[Handle, bool]:
    """Start a backfill, or add its partitions to the pipeline's running backfill.

    Returns:
        Its handle, and True if it was running before.

    Raises:
        InvalidPipeline: the running backfill cannot be joined.
        ServiceUnavailable: no worker answers for it, or the worker cannot continue it.
    """
    workflow_id = backfill_id(settings.sluice_installation, given.name)
    for _ in range(_TRIES):
        try:
            handle = await client.start_workflow(
                Backfill.run,
                given,
                id=workflow_id,
                task_queue=settings.sluice_task_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                static_summary=f"backfill of {given.name}",
            )
            return handle, False
        except WorkflowAlreadyStartedError:
            handle = client.get_workflow_handle_for(Backfill.run, workflow_id)
        added = AddPartitions(
            pipeline=given.pipeline,
            partitions=given.progress.partitions,
            starter=given.starter,
            again=given.again,
            over_younger=given.over_younger,
            in_order=given.progress.in_order,
            is_together=given.together is not None,
            recheck=not given.again and given.together is None,
        )
        try:
            await _updated(settings, handle, partial(handle.execute_update, Backfill.add, added))
            return handle, True
        except _NotRunning:  # it ended meanwhile
            continue
    raise ServiceUnavailable(f"the backfill of {given.name} could neither be started nor joined: try again")


async def change_backfill(
    client: Client, settings: InstallationSettings, pipeline: str, change: BackfillChange
) -> BackfillStatus:
    """Change the running backfill of a pipeline; return its status.

    Raises:
        InvalidPipeline: no backfill is running, or the change is refused.
        ServiceUnavailable: no worker answers for it, or the worker cannot continue it.
    """
    handle = backfill_handle(client, settings, pipeline)
    try:
        return await _updated(settings, handle, partial(handle.execute_update, Backfill.change, change))
    except _NotRunning as error:
        raise InvalidPipeline(
            f"no backfill of {pipeline} is under way{await _suggested(client, settings, pipeline)}: `backfill FILE "
            "--only failed` loads what the last one did not publish"
        ) from error


async def find_running_backfill(client: Client, settings: InstallationSettings, pipeline: str) -> Handle | None:
    """Return the handle of a pipeline's running backfill; None if none is running.

    The handle stays bound to this backfill, also after it continues as new, and never means a later backfill.
    """
    handle = backfill_handle(client, settings, pipeline)
    try:
        described = await handle.describe()
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        return None
    if described.status != WorkflowExecutionStatus.RUNNING:
        return None
    first = described.raw_description.workflow_execution_info.first_run_id or None
    return client.get_workflow_handle_for(Backfill.run, handle.id, first_execution_run_id=first)


async def cancel_backfill(handle: Handle) -> None:
    """Request that a backfill end, together with the runs that it started.

    Raises:
        InvalidPipeline: it has ended.
    """
    with _ended_meanwhile():
        await handle.cancel()


@contextmanager
def _ended_meanwhile() -> Iterator[None]:
    """Raise an error of the request if the backfill has ended."""
    try:
        yield
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        raise InvalidPipeline(
            "the backfill has ended meanwhile: nothing was cancelled, see `backfill status`"
        ) from error


async def discard_backfill(client: Client, settings: InstallationSettings, pipeline: str) -> list[str]:
    """Cancel the runs that an ended backfill left, and delete the branches on which it collected partitions.

    Returns:
        The cancelled workflows and the deleted branches.

    Raises:
        InvalidPipeline: it left nothing, or another one is under way by now.
        ServiceUnavailable: no worker answers, or the catalog does not.
    """
    if await find_running_backfill(client, settings, pipeline):
        raise InvalidPipeline(f"a backfill of {pipeline} began meanwhile: nothing was cancelled, see `backfill status`")
    left = await _discard(client, settings, pipeline)
    if not left:
        raise InvalidPipeline(
            f"no backfill of {pipeline} is under way, and the last one left nothing"
            f"{await _suggested(client, settings, pipeline)}: there is nothing to cancel"
        )
    return left


async def end_stuck_backfill(
    client: Client, settings: InstallationSettings, handle: Handle, pipeline: str, reason: str
) -> list[str]:
    """Terminate a backfill that the worker cannot continue, cancel its runs, and delete what it collected.

    Returns:
        The cancelled workflows and the deleted branches.

    Raises:
        InvalidPipeline: it has ended.
        ServiceUnavailable: no worker answers, or the catalog does not. Its runs are cancelled.
    """
    with _ended_meanwhile():
        await handle.terminate(reason=reason)
    return await _discard(client, settings, pipeline)


async def _discard(client: Client, settings: InstallationSettings, pipeline: str) -> list[str]:
    handle = backfill_handle(client, settings, pipeline)
    query = f'WorkflowType = "StartPipeline" AND ParentWorkflowId = "{handle.id}" AND ExecutionStatus = "Running"'
    children = [child.id async for child in client.list_workflows(query)]
    with suppress(InvalidPipeline, ServiceUnavailable):  # Temporal no longer has it, or the worker cannot read it
        children += (await read_backfill(client, settings, pipeline)).children.values()
    left: list[str] = []
    for child in dict.fromkeys(children):
        left += await cancel_start(client, child)
    given = DiscardBackfillInput(pipeline=pipeline_name(pipeline))
    left += await execute_short_workflow(client, settings, DiscardBackfill.run, given, "discard_backfill")
    return left


async def read_backfill(client: Client, settings: InstallationSettings, pipeline: str) -> BackfillStatus:
    """Return the status of the latest backfill of a pipeline. A completed backfill needs no worker.

    Raises:
        InvalidPipeline: there is none, or Temporal no longer has it.
        ServiceUnavailable: no worker answers for it, or the worker cannot continue it.
    """
    handle = backfill_handle(client, settings, pipeline)
    try:
        described = await _answered(settings, handle, handle.describe())
        if described.status == WorkflowExecutionStatus.COMPLETED:
            ended = client.get_workflow_handle_for(Backfill.run, described.id, run_id=described.run_id)
            return await _answered(settings, ended, ended.result())
        await refuse_if_stuck(handle, described, _ending(settings, handle))
        return await _answered(settings, handle, handle.query(Backfill.status))
    except _NotRunning as error:
        close = await _suggested(client, settings, pipeline)
        raise InvalidPipeline(f"there is no backfill of {pipeline}, or Temporal no longer has it{close}") from error


async def latest_backfills(client: Client, settings: InstallationSettings) -> dict[str, WorkflowExecution]:
    """Return the latest backfill of each pipeline of an installation, newest first."""
    prefix = backfill_id(settings.sluice_installation, "")
    newest: dict[str, WorkflowExecution] = {}
    query = f'WorkflowType = "{BACKFILL_WORKFLOW}" AND WorkflowId STARTS_WITH "{prefix}"'
    async for execution in client.list_workflows(query, limit=_MOST_LISTED):
        newest.setdefault(execution.id.removeprefix(prefix), execution)
    return newest


async def _suggested(client: Client, settings: InstallationSettings, pipeline: str) -> str:
    return suggestion(pipeline, await latest_backfills(client, settings))


class _NotRunning(Exception):
    """Raised when a workflow does not exist, or has ended and accepts no update."""


async def _updated(
    settings: InstallationSettings, handle: Handle, update: Callable[[], Awaitable[BackfillStatus]]
) -> BackfillStatus:
    """Send an update to a running backfill, unless the worker cannot continue it; return its status."""
    described = await _answered(settings, handle, handle.describe())
    await refuse_if_stuck(handle, described, _ending(settings, handle))
    return await _answered(settings, handle, update())


async def _answered(settings: InstallationSettings, handle: Handle, answer: Awaitable[_T]) -> _T:
    """Wait for the answer of Temporal or of a backfill.

    Raises:
        InvalidPipeline: the backfill refused the request.
        ServiceUnavailable: there was no answer in time, or the worker cannot continue the backfill.
    """
    try:
        with waiting_for_worker():
            return await asyncio.wait_for(answer, ANSWER_WITHIN)
    except WorkflowUpdateFailedError as error:
        cause = error.cause
        raise InvalidPipeline(cause.message if isinstance(cause, ApplicationError) else str(cause)) from error
    except (asyncio.TimeoutError, RPCTimeoutOrCancelledError, WorkflowQueryFailedError) as error:
        raise await no_answer(handle, _ending(settings, handle), _no_worker(settings)) from error
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            raise _NotRunning from error
        if error.status not in (RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.FAILED_PRECONDITION):
            raise
        raise await no_answer(handle, _ending(settings, handle), _no_worker(settings)) from error


def _ending(settings: InstallationSettings, handle: Handle) -> str:
    """Return the way to end a backfill."""
    return f"with `backfill cancel {handle.id.removeprefix(backfill_id(settings.sluice_installation, ''))}`"


def _no_worker(settings: InstallationSettings) -> ServiceUnavailable:
    return no_worker(f"from the task queue {settings.sluice_task_queue!r} in {ANSWER_WITHIN:.0f} s")
