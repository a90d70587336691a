"""What a worker does beside its activities: it registers with Temporal, and has tasks that end with it."""

import asyncio

from temporalio.client import Client

from runtime.arrivals.notifications.receivers import Receivers
from runtime.run.run_files import remove_old_run_files_daily
from runtime.schedules.schedules import register_check_of_registrations, register_reaper
from runtime.temporal_client import register_search_attributes
from sluice.settings import Settings

_MOMENT = 2.0


async def register_with_temporal(client: Client, settings: Settings) -> None:
    """Make the search attributes and schedules that workers of control need."""
    if settings.sluice_worker_role != "spark":
        await register_search_attributes(client)
        await register_reaper(client, settings)
        await register_check_of_registrations(client, settings)


def start_background(client: Client, settings: Settings) -> list[asyncio.Task[None]]:
    """Start the tasks.

    Raises:
        BadEnvironment: a setting of one is not valid.
    """
    tasks = [remove_old_run_files_daily(client, settings)]
    if settings.sluice_worker_role != "spark":
        tasks.append(Receivers(client, settings).run())
    return [asyncio.create_task(task) for task in tasks]


async def end_background(tasks: list[asyncio.Task[None]]) -> None:
    """End tasks; wait for a moment, so that they can close what they have open."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=_MOMENT)
