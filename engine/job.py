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
    """The job's own folder, for its configuration, scratch space and log."""
    branch: str
    catalog: Mapping[str, str] = field(repr=False)
    """The Spark configuration of the catalog, bound to the branch or pinned to a hash of it. It holds the token."""
    run_id: str = ""
    attempt: int = 0
    args: list[str] = field(default_factory=list)
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark configuration of the pipeline."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that the pipeline gives to its program."""
    built_in: bool = True
    """Whether it is one of Sluice's jobs. A user's program keeps the SQL semantics that it was written for."""
    working_directory: Path | None = None
    """By default the worker's."""
    try_number: int = 1
    """Which try of its activity this is, from 1; a write has one try in each attempt."""
    needs_jvm: bool = False
    """Whether it calls Java in its own process, which a session on a Spark Connect server has not."""
    pipeline: str = ""
    """The pipeline that it is of."""
    partition: str = ""
    """The partition that its run loads, or the time that the run is scheduled for; empty where it has neither."""
    runs_apart: bool = False
    """Whether it must not share a Spark Connect server with other jobs."""
    lineage_root: LineageParent | None = None
    """The OpenLineage run that started the run, if it is known."""
    input_bytes: int | None = None
    """How much it reads, where that is known before it starts."""


@dataclass(frozen=True)
class JobResult:
    """How a job ended."""

    code: int
    tail: list[str]
    """The last lines of its output."""
    log: Path
