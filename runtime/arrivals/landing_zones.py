"""Landing zones on Temporal: deploy them, read their status, and send them the requests of people."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from runtime.missing_worker import no_worker
from runtime.pipeline.pipeline_input import resolve_arrival
from sluice.contracts.arrivals import (
    ZONE_MEMO,
    Batch,
    BatchCommand,
    LandingZoneInput,
    PauseZone,
    SplitBatch,
    ZoneStatus,
    landing_zone_id,
    memo_of,
)
from sluice.contracts.starting import PipelineText
from sluice.contracts.zone_loads import LoadBatch
from sluice.deployment.files import PipelineFile
from sluice.deployment.plan import Change, DeployedItem, DeploySet, wanted_item
from sluice.errors import InvalidPipeline, ServiceUnavailable
from sluice.identifiers import suggestion
from sluice.pipeline.loading_rules import rule_of
from sluice.setting_groups import InstallationSettings
from workflows.arrivals.landing_zone import LandingZone

_WAITS = 3
"""Time limit of an answer of a landing zone, in multiples of SLUICE_WORKER_WAIT. A step under way ends before it."""
_T = TypeVar("_T")
_RUNNING = 'WorkflowType = "LandingZone" AND ExecutionStatus = "Running"'


class DeployedLandingZones:
    """The landing zones of one installation, as a kind of thing that `deploy` applies."""

    kind = "landing zone"

    def __init__(
        self, client: Client, settings: InstallationSettings, deployed: DeploySet, working_directory: Path
    ) -> None:
        self._client, self._settings, self._deployed = client, settings, deployed
        self._working_directory = str(working_directory)

    def wanted(self, file: PipelineFile) -> DeployedItem | None:
        """Return the landing zone that a file states, or None.

        Raises:
            InvalidPipeline: the zone would move loaded files to a place where it lists them again.
        """
        if file.pipeline.arrival is None:
            return None
        try:
            resolve_arrival(file.pipeline.arrival, Path(self._working_directory))
        except InvalidPipeline as error:
            raise InvalidPipeline(f"{file.name}: {error}") from error
        return wanted_item(
            self.kind,
            file,
            {**file.pipeline.arrival.properties(), "tables": ", ".join(sorted(file.pipeline.tables))},
            self._deployed,
            working_directory=self._working_directory,
            task_queue=self._settings.sluice_task_queue,
        )

    async def present(self) -> list[DeployedItem]:
        """Return the landing zones of this installation that are deployed and not ending."""
        return [
            DeployedItem(self.kind, memo["name"], memo["file"], memo["set"], memo["folder"], memo["properties"])
            async for memo in zone_memos(self._client, self._settings)
            if not await _is_ending(_handle(self._client, self._settings, memo["name"]))
        ]

    async def apply(self, change: Change, file: PipelineFile | None) -> None:
        """Create, change or remove a landing zone. A run that a removed zone started goes on.

        Raises:
            InvalidPipeline: another deploy was faster.
            ServiceUnavailable: no worker carried out the change in time.
        """
        handle = _handle(self._client, self._settings, change.item.pipeline)
        if change.action == "remove":
            await _ended(handle, self._settings, cancel=True)
        elif file is not None:
            input = self._input(change.item, file)
            if change.action == "create":
                await _ended(handle, self._settings)
                await self._create(input)
            else:
                await _answered(handle, self._settings, handle.execute_update(LandingZone.replace_pipeline, input))
                await self._moved(handle)

    async def _moved(self, handle: WorkflowHandle[LandingZone, None]) -> None:
        """Wait until a landing zone is on the task queue that it was deployed for.

        Raises:
            ServiceUnavailable: the zone is busy, and the move takes longer.
        """
        queue, until = self._settings.sluice_task_queue, time.monotonic() + _limit(self._settings)
        while (now := (await handle.describe()).task_queue) != queue:
            if time.monotonic() > until:
                raise ServiceUnavailable(
                    f"{handle.id} still works on the task queue {now}: keep its worker, and deploy again, until it has "
                    f"moved to {queue}"
                )
            await asyncio.sleep(0.5)

    def _input(self, item: DeployedItem, file: PipelineFile) -> LandingZoneInput:
        arrival = file.pipeline.arrival
        assert arrival, "an item is made for files with an arrival"
        return LandingZoneInput(
            pipeline=PipelineText(name=file.name, text=file.text, folder=self._working_directory),
            name=item.pipeline,
            installation=self._settings.sluice_installation,
            look=arrival.look,
            at_once=arrival.at_once,
            on_failure=arrival.on_failure,
            in_order=rule_of("arrival", file.pipeline.write, file.pipeline.tables).order == "one at a time",
            expect=arrival.expect,
            task_queue=self._settings.sluice_task_queue,
            set_name=item.set_name,
            deployed_from=item.folder,
            properties=item.properties,
        )

    async def _create(self, input: LandingZoneInput) -> None:
        try:
            await self._client.start_workflow(
                LandingZone.run,
                input,
                id=landing_zone_id(self._settings.sluice_installation, input.name),
                task_queue=self._settings.sluice_task_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                memo={ZONE_MEMO: memo_of(input)},
                static_summary=f"arrivals of {input.name}",
            )
        except WorkflowAlreadyStartedError as error:
            raise InvalidPipeline(
                f"the landing zone of {input.name} was made by another deploy meanwhile: deploy again"
            ) from error


async def read_zone(client: Client, settings: InstallationSettings, pipeline: str) -> ZoneStatus:
    """Return the status of the landing zone of a pipeline.

    Raises:
        InvalidPipeline: there is none.
        ServiceUnavailable: no worker answers.
    """
    handle = await _find(client, settings, pipeline)
    try:
        return await handle.query(LandingZone.status)
    except RPCError as error:
        raise no_worker(f"for {handle.id}") from error


async def list_zones(client: Client, settings: InstallationSettings) -> list[str]:
    """Return the sorted names of the pipelines that have a landing zone."""
    return sorted([memo["name"] async for memo in zone_memos(client, settings)])


async def list_now(client: Client, settings: InstallationSettings, pipeline: str) -> None:
    """Make the landing zone of a pipeline list its files soon. Raises `InvalidPipeline` if there is none."""
    await (await _find(client, settings, pipeline)).signal(LandingZone.look)


async def pause_zone(client: Client, settings: InstallationSettings, pipeline: str, request: PauseZone) -> None:
    """Pause the landing zone of a pipeline, or resume it. Raises `InvalidPipeline` if there is none."""
    handle = await _find(client, settings, pipeline)
    await _answered(handle, settings, handle.execute_update(LandingZone.pause, request))


async def command_batch(client: Client, settings: InstallationSettings, pipeline: str, command: BatchCommand) -> Batch:
    """Retry a batch that was kept out, or set it aside.

    Raises:
        InvalidPipeline: there is no such landing zone or batch, or its run is under way.
    """
    handle = await _find(client, settings, pipeline)
    with _refusals(pipeline):
        return await _answered(handle, settings, handle.execute_update(LandingZone.command, command))


async def split_batch(
    client: Client, settings: InstallationSettings, pipeline: str, request: SplitBatch
) -> list[Batch]:
    """Split a batch that was kept out or set aside into two batches that are loaded separately; return them.

    Raises:
        InvalidPipeline: there is no such landing zone or batch, it has one file, or its run is under way.
    """
    handle = await _find(client, settings, pipeline)
    with _refusals(pipeline):
        return await _answered(handle, settings, handle.execute_update(LandingZone.split, request))


async def load_batch(client: Client, settings: InstallationSettings, pipeline: str, request: LoadBatch) -> Batch:
    """Make the landing zone of a pipeline load a batch of named files.

    Raises:
        InvalidPipeline: there is no such landing zone, it is full, or it has this batch.
    """
    handle = await _find(client, settings, pipeline)
    with _refusals(pipeline):
        return await _answered(handle, settings, handle.execute_update(LandingZone.load, request))


@contextmanager
def _refusals(pipeline: str) -> Iterator[None]:
    """Raise a refusal of a landing zone as an error of the request."""
    try:
        yield
    except WorkflowUpdateFailedError as error:
        reason = error.cause.message if isinstance(error.cause, ApplicationError) else str(error)
        raise InvalidPipeline(f"{reason}: `arrivals {pipeline}` shows the batches") from error


async def _find(client: Client, settings: InstallationSettings, pipeline: str) -> WorkflowHandle[LandingZone, None]:
    handle = _handle(client, settings, pipeline)
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
    return handle


def _handle(client: Client, settings: InstallationSettings, pipeline: str) -> WorkflowHandle[LandingZone, None]:
    return client.get_workflow_handle_for(LandingZone.run, landing_zone_id(settings.sluice_installation, pipeline))


async def zone_memos(client: Client, settings: InstallationSettings) -> AsyncIterator[dict[str, Any]]:
    """Yield the memos of this installation's landing zones, which say how each was deployed."""
    prefix = landing_zone_id(settings.sluice_installation, "")
    async for execution in client.list_workflows(f'{_RUNNING} AND WorkflowId STARTS_WITH "{prefix}"'):
        memo = (await execution.memo()).get(ZONE_MEMO)
        if isinstance(memo, dict) and memo.get("installation") == settings.sluice_installation:
            yield memo


async def _is_ending(handle: WorkflowHandle[LandingZone, None]) -> bool:
    """Return True if a landing zone got a request to end. Without a worker it cannot follow the request."""
    return bool((await handle.describe()).raw_description.workflow_extended_info.cancel_requested)


async def _ended(
    handle: WorkflowHandle[LandingZone, None], settings: InstallationSettings, *, cancel: bool = False
) -> None:
    """Wait until a landing zone has ended that was cancelled, now or before.

    Raises:
        ServiceUnavailable: no worker ends it in time.
    """
    try:
        if cancel:
            await handle.cancel()
        if cancel or await _is_ending(handle):
            await _answered(handle, settings, handle.result())
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
    except WorkflowFailureError:  # it ended as cancelled
        pass


def _limit(settings: InstallationSettings) -> float:
    """Return the time to wait for an answer of a landing zone, in seconds."""
    return _WAITS * settings.sluice_worker_wait


async def _answered(
    handle: WorkflowHandle[LandingZone, None], settings: InstallationSettings, answer: Awaitable[_T]
) -> _T:
    """Wait for the answer of a landing zone.

    Raises:
        ServiceUnavailable: no worker answers in time.
    """
    limit = _limit(settings)
    try:
        return await asyncio.wait_for(answer, limit)
    except (asyncio.TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
        queue = (await handle.describe()).task_queue
        raise ServiceUnavailable(
            f"no worker answered for {handle.id} in {limit:g} s: start one with `SLUICE_TASK_QUEUE={queue} python "
            "worker.py`. It may then still carry out the request: `arrivals` shows the state"
        ) from error
