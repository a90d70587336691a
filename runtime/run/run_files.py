"""Remove old files of runs on the worker's machine: logs, specifications, answers and scratch space."""

import asyncio
import logging
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError

from sluice.setting_groups import StorageSettings

_RUN_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DAY = 86400.0

log = logging.getLogger("sluice.worker")


async def remove_old_run_files_daily(client: Client, settings: StorageSettings) -> None:
    """Remove the files of runs that ended long ago, now and once a day. Log a failure."""
    while settings.sluice_keep_run_files:
        try:
            if removed := await remove_old_run_files(client, settings):
                log.info("removed the files of %d runs that ended long ago", removed)
        except (OSError, RPCError) as error:
            log.warning("files of runs could not be removed: %s", error)
        await asyncio.sleep(_DAY)


async def remove_old_run_files(client: Client, settings: StorageSettings) -> int:
    """Remove the folders of runs whose last change is older than the retention; return their number.

    A run that goes on keeps its files, however old they are. While Temporal does not answer, every run keeps its files.
    """
    oldest = time.time() - settings.sluice_keep_run_files
    removed = 0
    for folder in await asyncio.to_thread(lambda: list(_run_folders(settings.runs))):
        if await asyncio.to_thread(_last_change, folder) < oldest and not await _goes_on(client, folder.name):
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            removed += not folder.exists()
    return removed


def _run_folders(runs: Path) -> Iterator[Path]:
    """Yield the folders named after a run. Skip links, since they may lead anywhere."""
    if runs.is_dir():
        for each in runs.iterdir():
            if _RUN_ID.fullmatch(each.name) and each.is_dir() and not each.is_symlink():
                yield each


def _last_change(folder: Path) -> float:
    """Return the time of the last write in a folder; now if a file disappears meanwhile."""
    try:
        return max(each.lstat().st_mtime for each in (folder, *folder.rglob("*")))
    except FileNotFoundError:
        return time.time()


async def _goes_on(client: Client, run_id: str) -> bool:
    """Return True if Temporal knows a run of this id that has not ended."""
    async for execution in client.list_workflows(f'RunId = "{run_id}"', limit=1):
        return execution.status == WorkflowExecutionStatus.RUNNING
    return False
