"""Landing zones on Temporal: read their status, and send them the requests of people."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from temporalio.client import (
    Client,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from runtime.missing_worker import no_worker
from runtime.stuck_workflow import no_answer, refuse_if_stuck
from runtime.worker_answer import waiting_for_worker
from sluice.contracts.arrivals import ZONE_MEMO, Batch, ZoneStatus, landing_zone_id
from sluice.contracts.zone_loads import LoadBatch
from sluice.contracts.zone_requests import BatchCommand, PauseZone, SplitBatch
from sluice.errors import InvalidPipeline, ServiceUnavailable
from sluice.identifiers import suggestion
from sluice.setting_groups import InstallationSettings
from workflows.arrivals.landing_zone import LandingZone

_WAITS = 3
"""Time limit of an answer of a landing zone, in multiples of SLUICE_WORKER_WAIT. A step under way ends before it."""
_WAITS_FOR_STATUS = 2
"""Time limit of the status of a landing zone, in the same unit: Temporal may ask a dead worker before it asks
another."""
ENDING = "by a `deploy` without its file"
"""The way to end a landing zone."""
_T = TypeVar("_T")
_RUNNING = 'WorkflowType = "LandingZone" AND ExecutionStatus = "Running"'


async def read_zone(client: Client, settings: InstallationSettings, pipeline: str) -> ZoneStatus:
    """Return the status of the landing zone of a pipeline.

    Raises:
        InvalidPipeline: there is none.
        ServiceUnavailable: no worker answers, or the worker cannot continue the zone.
    """
    handle = await _find(client, settings, pipeline)
    try:
        with waiting_for_worker():
            return await asyncio.wait_for(
                handle.query(LandingZone.status), _WAITS_FOR_STATUS * settings.sluice_worker_wait
            )
    except (RPCError, WorkflowQueryFailedError, asyncio.TimeoutError) as error:
        raise await no_answer(handle, ENDING, no_worker(f"for {handle.id}")) from error


async def read_zones(
    client: Client, settings: InstallationSettings
) -> tuple[list[ZoneStatus], dict[str, ServiceUnavailable]]:
    """Return the statuses of all landing zones, and by name the errors of those that gave no answer."""
    names = await list_zones(client, settings)
    answers = await asyncio.gather(*(_read_or_error(client, settings, name) for name in names))
    zones = [each for each in answers if isinstance(each, ZoneStatus)]
    silent = {name: each for name, each in zip(names, answers, strict=True) if isinstance(each, ServiceUnavailable)}
    return zones, silent


async def _read_or_error(
    client: Client, settings: InstallationSettings, name: str
) -> ZoneStatus | ServiceUnavailable | None:
    """Return the status of a landing zone, or the error of one without an answer; None if it has ended meanwhile."""
    try:
        return await read_zone(client, settings, name)
    except ServiceUnavailable as error:
        return error
    except InvalidPipeline:
        return None


async def list_zones(client: Client, settings: InstallationSettings) -> list[str]:
    """Return the sorted names of the pipelines that have a landing zone."""
    return sorted([memo["name"] async for memo in zone_memos(client, settings)])


async def list_now(client: Client, settings: InstallationSettings, pipeline: str) -> None:
    """Make the landing zone of a pipeline list its files soon. Raises `InvalidPipeline` if there is none."""
    await (await _find(client, settings, pipeline)).signal(LandingZone.look)


async def pause_zone(client: Client, settings: InstallationSettings, pipeline: str, request: PauseZone) -> None:
    """Pause the landing zone of a pipeline, or resume it. Raises `InvalidPipeline` if there is none."""
    handle = await _find(client, settings, pipeline)
    await answer_of_zone(handle, settings, handle.execute_update(LandingZone.pause, request))


async def command_batch(client: Client, settings: InstallationSettings, pipeline: str, command: BatchCommand) -> Batch:
    """Retry a batch that was kept out, or set it aside.

    Raises:
        InvalidPipeline: there is no such landing zone or batch, or its run is under way.
    """
    handle, now = await _find(client, settings, pipeline), command.model_copy(update={"keeps_named": True})
    with _refusals(pipeline):
        return await answer_of_zone(handle, settings, handle.execute_update(LandingZone.command, now))


async def split_batch(
    client: Client, settings: InstallationSettings, pipeline: str, request: SplitBatch
) -> list[Batch]:
    """Split a batch that was kept out or set aside into two batches that are loaded separately; return them.

    Raises:
        InvalidPipeline: there is no such landing zone or batch, it has one file, or its run is under way.
    """
    handle = await _find(client, settings, pipeline)
    with _refusals(pipeline):
        return await answer_of_zone(handle, settings, handle.execute_update(LandingZone.split, request))


async def load_batch(client: Client, settings: InstallationSettings, pipeline: str, request: LoadBatch) -> Batch:
    """Make the landing zone of a pipeline load a batch of named files.

    Raises:
        InvalidPipeline: there is no such landing zone, it is full, or it has this batch.
    """
    handle = await _find(client, settings, pipeline)
    with _refusals(pipeline):
        return await answer_of_zone(handle, settings, handle.execute_update(LandingZone.load, request))


@contextmanager
def _refusals(pipeline: str) -> Iterator[None]:
    """Raise a refusal of a landing zone as an error of the request."""
    try:
        yield
    except WorkflowUpdateFailedError as error:
        reason = error.cause.message if isinstance(error.cause, ApplicationError) else str(error)
        raise InvalidPipeline(f"{reason}: `arrivals {pipeline}` shows the batches") from error


async def _find(client: Client, settings: InstallationSettings, pipeline: str) -> WorkflowHandle[LandingZone, None]:
    """Return the handle of the landing zone of a pipeline.

    Raises:
        InvalidPipeline: there is none.
        ServiceUnavailable: the worker cannot continue it.
    """
    handle = zone_handle(client, settings, pipeline)
    try:
        described = await handle.describe()
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        described = None
    if described is None or described.close_time is not None:
        known = await list_zones(client, settings)
        raise InvalidPipeline(
            f"the pipeline {pipeline!r} has no landing zone{suggestion(pipeline, known)}; `arrivals` shows those that "
            "are deployed"
        )
    await refuse_if_stuck(handle, described, ENDING)
    return handle


def zone_handle(client: Client, settings: InstallationSettings, pipeline: str) -> WorkflowHandle[LandingZone, None]:
    """Return the handle of the landing zone of a pipeline, which may not exist."""
    return client.get_workflow_handle_for(LandingZone.run, landing_zone_id(settings.sluice_installation, pipeline))


async def zone_memos(client: Client, settings: InstallationSettings) -> AsyncIterator[dict[str, Any]]:
    """Yield the memos of this installation's landing zones, which say how each was deployed."""
    prefix = landing_zone_id(settings.sluice_installation, "")
    async for execution in client.list_workflows(f'{_RUNNING} AND WorkflowId STARTS_WITH "{prefix}"'):
        memo = (await execution.memo()).get(ZONE_MEMO)
        if isinstance(memo, dict) and memo.get("installation") == settings.sluice_installation:
            yield memo


def answer_limit(settings: InstallationSettings) -> float:
    """Return the time to wait for an answer of a landing zone, in seconds."""
    return _WAITS * settings.sluice_worker_wait


async def answer_of_zone(
    handle: WorkflowHandle[LandingZone, None], settings: InstallationSettings, answer: Awaitable[_T]
) -> _T:
    """Wait for the answer of a landing zone.

    Raises:
        ServiceUnavailable: no worker answers in time, or the worker cannot continue the zone.
    """
    limit = answer_limit(settings)
    try:
        with waiting_for_worker():
            return await asyncio.wait_for(answer, limit)
    except (asyncio.TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
        queue = (await handle.describe()).task_queue
        late = ServiceUnavailable(
            f"no worker answered for {handle.id} in {limit:g} s: start one with `SLUICE_TASK_QUEUE={queue} python "
            "worker.py`. It may then still carry out the request: `arrivals` shows the state"
        )
        raise await no_answer(handle, ENDING, late) from error
