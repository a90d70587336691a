"""Pause and resume the automatic starts of a pipeline."""

import getpass

from temporalio.client import Client, ScheduleHandle
from temporalio.service import RPCError, RPCStatusCode

from runtime.arrivals.landing_zones import list_zones, pause_zone
from runtime.schedules.deployed_schedules import deployed_schedules
from sluice.contracts.zone_requests import PauseZone
from sluice.errors import InvalidPipeline
from sluice.identifiers import schedule_id, suggestion
from sluice.setting_groups import InstallationSettings
from sluice.sizes import format_count


async def pause_pipeline(client: Client, settings: InstallationSettings, pipeline: str, note: str) -> str:
    """Pause the schedule and the landing zone of a pipeline, with a note that gives the reason.

    Returns:
        the note of the schedule, as of `pause_schedule`.

    Raises:
        InvalidPipeline: it has neither, or the note is empty.
    """
    if not note.strip():
        raise InvalidPipeline("--note is empty: give the reason, which `list --schedules` and `arrivals` show")
    zone, schedule = await _find(client, settings, pipeline)
    noted = await pause_schedule(schedule, note) if schedule else note
    if zone:
        await pause_zone(client, settings, pipeline, PauseZone(paused=True, note=note, by=getpass.getuser()))
    return noted


async def pause_schedule(schedule: ScheduleHandle, note: str) -> str:
    """Pause a schedule; return its note, which also counts the starts that wait for the end of a run.

    Temporal discards them without a trace if that run ends during the pause.
    """
    if waiting := (await schedule.describe()).raw_description.info.buffer_size:
        note += (
            f"; {format_count(waiting, 'start')} waiting for the present run, and discarded if that run ends during "
            "the pause: then use `run FILE --scheduled-for TIME`"
        )
    await schedule.pause(note=note)
    return note


async def resume_pipeline(client: Client, settings: InstallationSettings, pipeline: str, note: str) -> None:
    """Resume the schedule and the landing zone of a pipeline.

    Raises:
        InvalidPipeline: the pipeline has neither.
    """
    zone, schedule = await _find(client, settings, pipeline)
    if schedule:
        await schedule.unpause(note=note or "resumed")
    if zone:
        await pause_zone(client, settings, pipeline, PauseZone(paused=False, note=note, by=getpass.getuser()))


async def _find(client: Client, settings: InstallationSettings, pipeline: str) -> tuple[bool, ScheduleHandle | None]:
    """Return True if a pipeline has a landing zone, and the handle of its schedule."""
    zones = await list_zones(client, settings)
    handle = client.get_schedule_handle(schedule_id(settings.sluice_installation, pipeline))
    try:
        await handle.describe()
        return pipeline in zones, handle
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        if pipeline in zones:
            return True, None
        known = [*zones, *[given.name async for _, given in deployed_schedules(client, settings)]]
        raise InvalidPipeline(
            f"the pipeline {pipeline!r} has no schedule and no landing zone{suggestion(pipeline, known)}; "
            "`list --schedules` and `arrivals` show those that are deployed"
        ) from error
