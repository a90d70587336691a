"""The schedule on which Temporal starts the reaper."""

import logging
from dataclasses import replace
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

    try:
        try:
            await client.create_schedule(schedule_id(settings), schedule)
        except ScheduleAlreadyRunningError:
            await client.get_schedule_handle(schedule_id(settings)).update(lambda present: _update(present, schedule))
    except RPCError as error:  # a server without schedules: runs work without the reaper
        log.warning("the reaper's schedule could not be created: %s", error)


def _update(present: ScheduleUpdateInput, wanted: Schedule) -> ScheduleUpdate:
    """Return the schedule with what the settings say; what a person set stays: whether it is paused, and why."""
    kept = present.description.schedule
    return ScheduleUpdate(schedule=replace(kept, action=wanted.action, spec=wanted.spec))
