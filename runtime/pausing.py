"""Pausing and resuming what starts a pipeline without a person."""

from temporalio.client import Client, ScheduleHandle
from temporalio.service import RPCError, RPCStatusCode

from runtime.deployed_schedules import deployed_schedules
from sluice.contracts.schedules import schedule_id
from sluice.errors import InvalidPipeline
from sluice.identifiers import suggestion
from sluice.settings import Settings


async def pause_pipeline(client: Client, settings: Settings, pipeline: str, note: str) -> None:
    """Pause the schedule of a pipeline, and note why.

    Raises:
        InvalidPipeline: it has none, or there is no note.
    """
    if not note.strip():
        raise InvalidPipeline("--note is empty: say why, for those who see a schedule that does not start")
    await (await _find(client, settings, pipeline)).pause(note=note)


async def resume_pipeline(client: Client, settings: Settings, pipeline: str, note: str) -> None:
    """Resume the schedule of a pipeline.

    Raises:
        InvalidPipeline: it has none.
    """
    await (await _find(client, settings, pipeline)).unpause(note=note or "resumed")


async def _find(client: Client, settings: Settings, pipeline: str) -> ScheduleHandle:
    handle = client.get_schedule_handle(schedule_id(settings.sluice_installation, pipeline))
    try:
        await handle.describe()
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        known = [given.name async for _, given in deployed_schedules(client, settings)]
        raise InvalidPipeline(
            f"the pipeline {pipeline!r} has no schedule{suggestion(pipeline, known)}; `list --schedules` shows those "
            "that are deployed"
        ) from error
    return handle
