"""List the files of a landing zone, each with its state."""

from temporalio.client import Client

from runtime.short_workflow import query_lake
from sluice.arrivals.held_batches import decided_states
from sluice.arrivals.limits import room_for_batches
from sluice.contracts.arrivals import FileStatus, ListArrivalsInput, ListArrivalsResult, ZoneStatus
from sluice.setting_groups import InstallationSettings


async def list_zone_files(
    client: Client, settings: InstallationSettings, zone: ZoneStatus, file: str, status: FileStatus | None, limit: int
) -> ListArrivalsResult:
    """Return the files of a landing zone, those that main lacks first, then the newest.

    Args:
        file: part of the path; empty means every file.
        status: the only status to list; None for all.

    Raises:
        SluiceError: the zone cannot be listed, or no worker answers.
    """
    query = ListArrivalsInput(
        pipeline=zone.pipeline,
        held=[batch.ref for batch in zone.batches],
        states=decided_states(zone.batches),
        has_room=room_for_batches(zone.batches) > 0,
        file=file,
        status=status,
        limit=limit,
    )
    return await query_lake(client, settings, query, ListArrivalsResult)
