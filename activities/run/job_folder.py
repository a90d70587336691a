"""Folders of Spark jobs on the worker's machine, with specification, answer, log and scratch space."""

import shutil
from pathlib import Path
from typing import Literal

from engine.private_files import private_folder
from sluice.contracts.references import RunRef
from sluice.errors import DiskFull
from sluice.setting_groups import StorageSettings

JobName = Literal["write", "scan", "rescan", "quarantine-rows"]
"""Name of a job of an attempt, used for its folder and in the name of its pod on Kubernetes."""
MIN_FREE_BYTES = 100 * 2**20
"""Minimum free space on the disk to start Spark, in bytes."""


def create_job_folder(settings: StorageSettings, run_ref: RunRef, job: JobName) -> Path:
    """Create and return the folder of one job of one attempt. Delete the scratch space of the run's dead attempts.

    Raises:
        DiskFull: the disk of the folder is nearly full.
    """
    run = private_folder(private_folder(settings.runs) / run_ref.run_id)
    for scratch in run.glob("*/*/scratch"):
        shutil.rmtree(scratch, ignore_errors=True)
    folder = private_folder(private_folder(run / f"a{run_ref.attempt}") / job)
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        raise DiskFull(f"there are only {free >> 20} MiB free at {folder}: Spark needs room for scratch and logs")
    return folder
