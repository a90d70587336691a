"""One Spark job, whatever engine runs it, and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class SparkJob:
    """One Spark job on one branch."""

    program: Path
    folder: Path
    """The job's own folder, for its configuration, scratch space and log."""
    branch: str
    at: str | None = None
    """Pin the branch to this hash: the job can read it, and cannot write."""
    run_id: str = ""
    attempt: int = 0
    args: list[str] = field(default_factory=list)
    conf: Mapping[str, str] = field(default_factory=dict)
    """Configuration of the pipeline's own."""
    ours: bool = True
    """Whether it is one of Sluice's jobs. A user's program keeps the semantics that it was written for."""
    where: Path | None = None
    """Its working directory; by default the worker's."""
    pipeline: str = ""
    """Whose turn it takes when jobs wait for room."""
    tries: int = 1
    """Which try of its act this is; a write has but one in each attempt."""
    classic: bool = False
    """Whether it needs Spark's JVM beside it, which a session on a server has not."""
    bytes: int | None = None
    """How much it reads, where that is known beforehand."""


@dataclass(frozen=True)
class JobResult:
    """How a job ended."""

    code: int
    tail: list[str]
    """The last lines of its output."""
    log: Path
