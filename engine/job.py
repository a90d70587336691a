"""A Spark job and its result, the same for every engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sluice.contracts.references import LineageParent


@dataclass(frozen=True)
class SparkJob:
    """One Spark job on one branch."""

    program: Path
    folder: Path
    """The job's own folder for its configuration, scratch space and log."""
    branch: str
    catalog: Mapping[str, str] = field(repr=False)
    """The Spark configuration of the catalog, bound to the branch or pinned to a hash of it. It contains the token."""
    run_id: str = ""
    attempt: int = 0
    args: list[str] = field(default_factory=list)
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark configuration of the pipeline."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that the pipeline gives to its program."""
    built_in: bool = True
    """True for Sluice's own jobs. A user's program keeps the SQL semantics that it was written for."""
    shares_server: bool = False
    """True if the pipeline of a user's program allows it to run on the warm server that programs share."""
    working_directory: Path | None = None
    """Working directory of the job; None for the worker's own."""
    try_number: int = 1
    """Number of this try of the activity, from 1. A write has one try in each attempt."""
    needs_jvm: bool = False
    """True if the job calls Java in its own process. A session on a Spark Connect server cannot."""
    pipeline: str = ""
    """Name of the run's pipeline."""
    partition: str = ""
    """The partition that the run loads, or the time that the run is scheduled for; empty if it has neither."""
    runs_apart: bool = False
    """True if the job must not share a Spark Connect server with other jobs."""
    lineage_root: LineageParent | None = None
    """The OpenLineage run that started this run, if it is known."""
    input_bytes: int | None = None
    """Size of the input in bytes, if it is known before the job starts."""


@dataclass(frozen=True)
class JobResult:
    """Exit code, last lines of output, and log of a job that ended."""

    code: int
    tail: list[str]
    """The last lines of the job's output."""
    log: Path
