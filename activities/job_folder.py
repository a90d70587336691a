"""The folders of Spark jobs on the worker's machine: specification, answer, log and scratch space."""

import shutil
from pathlib import Path
from typing import Literal

from sluice.contracts.references import RunRef
from sluice.errors import JobFailed
from sluice.settings import Settings

JobName = Literal["write", "scan", "quarantine-rows"]
"""The jobs of an attempt, as their folders are named. The name of a pod on Kubernetes holds it, too."""
_MIN_FREE_BYTES = 100 * 2**20
"""With less free space than this, Spark is not started."""


def create_job_folder(settings: Settings, run_ref: RunRef, job: JobName) -> Path:
    """Create and return the folder of one job of one attempt; delete the scratch space of dead attempts.

    Raises:
        JobFailed: its disk is nearly full.
    """
    run = settings.runs / run_ref.run_id
    for scratch in run.glob("*/*/scratch"):
        shutil.rmtree(scratch, ignore_errors=True)
    folder = run / f"a{run_ref.attempt}" / job
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < _MIN_FREE_BYTES:
        raise JobFailed(f"there are only {free >> 20} MiB free at {folder}: Spark needs room for scratch and logs")
    return folder
