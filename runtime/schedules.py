"""The schedule on which Temporal starts the reaper."""

import logging
from datetime import timedelta

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError

from sluice.contracts.quarantine import ReapBranchesInput
from sluice.settings import Settings
from workflows.reap_branches import ReapBranches

log = logging.getLogger("sluice.worker")


def schedule_id(settings: Settings) -> str:
    """Return the id of the reaper's schedule: one for each installation."""
    return f"sluice-reaper-{settings.sluice_installation}"


async def register_reaper(client: Client, settings: Settings) -> None:
    """Create the reaper's schedule, or update it; every worker does so when it starts."""
    if not settings.sluice_reap_every:
        return
    schedule = Schedule(
        action=ScheduleActionStartWorkflow(
            ReapBranches.run,
            ReapBranchesInput(grace=settings.sluice_reap_grace),
            id=schedule_id(settings),
            task_queue=settings.sluice_task_queue,
        ),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(seconds=settings.sluice_reap_every))]),
    )

    def update(_: ScheduleUpdateInput) -> ScheduleUpdate:
        return ScheduleUpdate(schedule=schedule)

    try:
        await client.create_schedule(schedule_id(settings), schedule)
    except ScheduleAlreadyRunningError:
        await client.get_schedule_handle(schedule_id(settings)).update(update)
    except RPCError as error:  # a server without schedules: runs work without the reaper
        log.warning("the reaper's schedule could not be created: %s", error)
