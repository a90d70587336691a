"""Where the Spark jobs of a run keep their things on the worker's machine."""

import shutil
from pathlib import Path

from sluice.orders import Origin
from sluice.settings import Settings


def job_folder(settings: Settings, origin: Origin, job: str) -> Path:
    """Make and return the folder of one job of one attempt; clear what dead attempts left in scratch."""
    run = settings.runs / origin.run_id
    for scratch in run.glob("*/*/scratch"):
        shutil.rmtree(scratch, ignore_errors=True)
    folder = run / f"a{origin.attempt}" / job
    folder.mkdir(parents=True, exist_ok=True)
    return folder
