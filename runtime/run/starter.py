"""The starter of a run: a person, a schedule, or another program."""

import socket
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Starter:
    """The starter of a run, and the folder in which a job of the user runs, if the worker has this folder."""

    name: str
    working_directory: Path


def starter_here(person: str) -> Starter:
    """Return a person who starts runs on this machine, in the current folder."""
    return Starter(f"{person}@{socket.gethostname()}", Path.cwd())
