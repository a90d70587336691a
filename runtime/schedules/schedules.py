"""The schedules by which Temporal starts the reaper and the check of registrations."""

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
from sluice.contracts.registration import CheckRegistrationsInput
from sluice.identifiers import reaper_schedule_id
from sluice.setting_groups import InstallationSettings, ReaperSettings, RegistrationSettings
from workflows.quarantine.reap_branches import ReapBranches
from workflows.registration.check_registrations import CheckRegistrations

log = logging.getLogger("sluice.worker")


async def register_reaper(client: Client, installation: InstallationSettings, settings: ReaperSettings) -> None:
    """Create or update the reaper's schedule. Every worker does so when it starts."""
    if not settings.sluice_reap_every:
        return
    schedule = Schedule(
        action=ScheduleActionStartWorkflow(
            ReapBranches.run,
            ReapBranchesInput(grace=settings.sluice_reap_grace),
            id=reaper_schedule_id(installation.sluice_installation),
            task_queue=installation.sluice_task_queue,
        ),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(seconds=settings.sluice_reap_every))]),
    )
    await _register(client, reaper_schedule_id(installation.sluice_installation), schedule)


async def register_check_of_registrations(
    client: Client, installation: InstallationSettings, settings: RegistrationSettings
) -> None:
    """Create or update the schedule that compares tables of targets with main, if there is a file of targets."""
    if not settings.sluice_check_registrations_every or not settings.sluice_targets_file:
        return
    every = timedelta(seconds=settings.sluice_check_registrations_every)
    name = f"sluice-registrations-{installation.sluice_installation}"
    schedule = Schedule(
        action=ScheduleActionStartWorkflow(
            CheckRegistrations.run,
            CheckRegistrationsInput(),
            id=name,
            task_queue=installation.sluice_task_queue,
        ),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=every)]),
    )
    await _register(client, name, schedule)


async def _register(client: Client, name: str, schedule: Schedule) -> None:
    try:
        try:
            await client.create_schedule(name, schedule)
        except ScheduleAlreadyRunningError:
            await client.get_schedule_handle(name).update(lambda present: _update(present, schedule))
    except RPCError as error:  # a server without schedules: runs work without them
        log.warning("the schedule %s could not be created: %s", name, error)


def _update(present: ScheduleUpdateInput, wanted: Schedule) -> ScheduleUpdate:
    """Return the schedule as the settings state it, except that a person's pause and its note stay."""
    kept = present.description.schedule
    return ScheduleUpdate(schedule=replace(kept, action=wanted.action, spec=wanted.spec))
