"""Deploy landing zones: create, change and remove them."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from runtime.arrivals.landing_zones import (
    ENDING,
    answer_limit,
    answer_of_zone,
    read_zone,
    zone_handle,
    zone_memos,
)
from runtime.missing_worker import cannot_continue
from runtime.pipeline.pipeline_input import resolve_arrival
from runtime.stuck_workflow import StuckWorkflow, find_stuck, refuse_if_stuck
from sluice.contracts.arrivals import (
    ZONE_MEMO,
    Batch,
    BatchState,
    LandingZoneInput,
    landing_zone_id,
    memo_of,
)
from sluice.contracts.starting import PipelineText
from sluice.deployment.files import PipelineFile
from sluice.deployment.plan import Change, DeployedItem, DeploySet, wanted_item
from sluice.errors import InvalidPipeline, ServiceUnavailable, SluiceError
from sluice.pipeline.loading_rules import rule_of
from sluice.setting_groups import InstallationSettings
from sluice.sizes import format_count
from workflows.arrivals.landing_zone import LandingZone

_FORGOTTEN: tuple[BatchState, ...] = ("kept out", "set aside")
"""States of the batches that only the zone remembers."""
_HINT_WITHIN = 5.0
"""Time that a worker has to report the status of a zone that is to be removed, in seconds."""


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
        """Return the landing zones of this installation that are deployed and not ending.

        A landing zone that should end, and that the worker cannot continue, has the property `state`: a deploy removes
        it again, or replaces it.
        """
        items = []
        async for memo in zone_memos(self._client, self._settings):
            handle = zone_handle(self._client, self._settings, memo["name"])
            is_ending = await _is_ending(handle)
            if not is_ending or await _stuck(handle):
                properties = memo["properties"] | ({"state": "ending"} if is_ending else {})
                items.append(
                    DeployedItem(self.kind, memo["name"], memo["file"], memo["set"], memo["folder"], properties)
                )
        return items

    async def apply(self, change: Change, file: PipelineFile | None) -> None:
        """Create, change or remove a landing zone. A run that a removed zone started goes on.

        Raises:
            InvalidPipeline: another deploy was faster.
            ServiceUnavailable: no worker carried out the change in time, or the worker cannot continue the zone.
        """
        handle = zone_handle(self._client, self._settings, change.item.pipeline)
        if change.action == "remove":
            await _ended(handle, self._settings, cancel=True)
        elif file is not None:
            input = self._input(change.item, file)
            if change.action == "create" or await _is_ending(handle):
                await _ended(handle, self._settings)
                await self._create(input)
            else:
                await refuse_if_stuck(handle, await handle.describe(), ENDING)
                await answer_of_zone(handle, self._settings, handle.execute_update(LandingZone.replace_pipeline, input))
                await self._moved(handle)

    async def _moved(self, handle: WorkflowHandle[LandingZone, None]) -> None:
        """Wait until a landing zone is on the task queue that it was deployed for.

        Raises:
            ServiceUnavailable: the zone is busy, and the move takes longer.
        """
        queue, until = self._settings.sluice_task_queue, time.monotonic() + answer_limit(self._settings)
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
            keeps_overtaken_out=True,
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


async def hint_on_removal(client: Client, settings: InstallationSettings, pipeline: str) -> str:
    """Return what the removal of a landing zone forgets; empty if that is nothing, or if no worker says it soon."""
    try:
        zone = await asyncio.wait_for(read_zone(client, settings, pipeline), _HINT_WITHIN)
    except (SluiceError, asyncio.TimeoutError):
        return ""
    return describe_forgotten(zone.batches)


def describe_forgotten(batches: Iterable[Batch]) -> str:
    """Return what the removal of a landing zone with these batches forgets; empty if that is nothing."""
    files = Counter[str]()
    for batch in batches:
        files[batch.state] += batch.ref.files
    forgotten = [f"the {format_count(files[state], 'file')} {state}" for state in _FORGOTTEN if files[state]]
    return f"a zone that is deployed again loads {' and '.join(forgotten)} in this one" if forgotten else ""


async def _stuck(handle: WorkflowHandle[LandingZone, None]) -> StuckWorkflow | None:
    """Return why the worker cannot continue a landing zone; None if it can. Raises `RPCError` if there is none."""
    return await find_stuck(handle, await handle.describe())


async def _is_ending(handle: WorkflowHandle[LandingZone, None]) -> bool:
    """Return True if a landing zone got a request to end. Without a worker it cannot follow the request."""
    return bool((await handle.describe()).raw_description.workflow_extended_info.cancel_requested)


async def _ended(
    handle: WorkflowHandle[LandingZone, None], settings: InstallationSettings, *, cancel: bool = False
) -> None:
    """Wait until a landing zone has ended that was cancelled, now or before.

    The second time, one that the worker cannot continue is terminated. Its runs go on, as those of any removed zone.

    Raises:
        ServiceUnavailable: no worker ends it in time, or the worker cannot continue it.
    """
    try:
        if stuck := await _stuck(handle):
            if not stuck.is_cancel_requested and cancel:
                await handle.cancel()
                raise cannot_continue(handle.id, stuck.why, "by the same `deploy` once more")
            if stuck.is_cancel_requested:
                await handle.terminate(reason="removed by a deploy: the worker cannot continue it")
            return
        if cancel:
            await handle.cancel()
        if cancel or await _is_ending(handle):
            await answer_of_zone(handle, settings, handle.result())
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
    except WorkflowFailureError:  # it ended as cancelled
        pass
