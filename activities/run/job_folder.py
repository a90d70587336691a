"""The folders of Spark jobs on the worker's machine: specification, answer, log and scratch space."""

import shutil
from pathlib import Path
from typing import Literal

from engine.private_files import private_folder
from sluice.contracts.references import RunRef
from sluice.errors import DiskFull
from sluice.settings import Settings

JobName = Literal["write", "scan", "rescan", "quarantine-rows"]
"""The jobs of an attempt, as their folders are named. The name of a pod on Kubernetes holds it, too."""
MIN_FREE_BYTES = 100 * 2**20
"""With less free space than this, Spark is not started."""


def create_job_folder(settings: Settings, run_ref: RunRef, job: JobName) -> Path:
    """Create and return the folder of one job of one attempt; delete the scratch space of dead attempts.

    Raises:
        DiskFull: its disk is nearly full.
    """
    run = private_folder(private_folder(settings.runs) / run_ref.run_id)
    for scratch in run.glob("*/*/scratch"):
        shutil.rmtree(scratch, ignore_errors=True)
    folder = private_folder(private_folder(run / f"a{run_ref.attempt}") / job)
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        raise DiskFull(f"there are only {free >> 20} MiB free at {folder}: Spark needs room for scratch and logs")
    return folder
