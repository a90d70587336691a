"""Where the Spark jobs of a run keep their things on the worker's machine."""

import shutil
from pathlib import Path

from sluice.contracts.activity_inputs import RunRef
from sluice.errors import JobFailed
from sluice.settings import Settings

_LEAST = 100 * 2**20
"""With less room than this, in bytes, Spark is not started."""


def job_folder(settings: Settings, run_ref: RunRef, job: str) -> Path:
    """Make and return the folder of one job of one attempt; clear what dead attempts left in scratch.

    Raises:
        JobFailed: there is hardly any room on its disk.
    """
    run = settings.runs / run_ref.run_id
    for scratch in run.glob("*/*/scratch"):
        shutil.rmtree(scratch, ignore_errors=True)
    folder = run / f"a{run_ref.attempt}" / job
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < _LEAST:
        raise JobFailed(f"there are only {free >> 20} MiB free at {folder}: Spark needs room for scratch and logs")
    return folder
