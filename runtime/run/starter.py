"""The starter of a run: a person, a schedule, or another program."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Starter:
    """The starter of a run, and the folder in which a job of the user runs, if the worker has this folder."""

    name: str
    working_directory: Path
