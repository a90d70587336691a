"""Background work of a worker: registration with Temporal, and tasks that end with the worker."""

import asyncio

from temporalio.client import Client

from runtime.arrivals.notifications.receivers import Receivers
from runtime.run.run_files import remove_old_run_files_daily
from runtime.schedules.schedules import register_check_of_registrations, register_reaper
from runtime.temporal_client import register_search_attributes
from sluice.settings import Settings

_MOMENT = 2.0


async def register_with_temporal(client: Client, settings: Settings) -> None:
    """Create the search attributes and schedules that control workers need."""
    if settings.worker.sluice_worker_role != "spark":
        await register_search_attributes(client)
        await register_reaper(client, settings.installation, settings.reaper)
        await register_check_of_registrations(client, settings.installation, settings.registration)


def start_background(client: Client, settings: Settings) -> list[asyncio.Task[None]]:
    """Start the background tasks.

    Raises:
        BadEnvironment: a setting of a task is not valid.
    """
    tasks = [remove_old_run_files_daily(client, settings.storage)]
    if settings.worker.sluice_worker_role != "spark":
        tasks.append(Receivers(client, settings).run())
    return [asyncio.create_task(task) for task in tasks]


async def end_background(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks, and wait briefly for them to close their resources."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=_MOMENT)
