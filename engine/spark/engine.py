"""The interface of engines, and the engine that runs each job with spark-submit.

Every engine runs the same program, with the same log, progress, cancellation and fencing.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from engine.job import JobResult, SparkJob
from engine.process.heartbeat import Heartbeat, run_in_thread
from engine.process.supervise import run_supervised
from engine.spark.class_data_archive import archive_option, discard_if_crashed, find_archive
from engine.spark.java import find_java
from engine.spark.submit import command, compiler_option, environment
from sluice.setting_groups import SparkJobSettings


class Engine(Protocol):
    """An engine that runs jobs to their end, under supervision. A cancellation leaves no process of a job behind."""

    @property
    def has_jvm(self) -> bool:
        """True if a job can call Java in its own process."""

    async def run(self, job: SparkJob, heartbeat: Heartbeat) -> JobResult:
        """Run a job, and send its progress every second.

        Raises:
            BadEnvironment: software that the engine needs is not installed.
            ServiceUnavailable: the engine's server does not answer.
        """

    async def warm_up(self) -> None:
        """Start the processes that the first job would otherwise wait for. A failure is only logged; jobs report it."""

    async def close(self) -> None:
        """End the processes that the engine keeps between jobs."""


@dataclass(frozen=True)
class SubmitEngine:
    """The engine that runs each job as an application of its own with `spark-submit`, on any master."""

    settings: SparkJobSettings
    has_jvm = True

    async def run(self, job: SparkJob, heartbeat: Heartbeat) -> JobResult:
        """Start an application and run it to its end."""
        prepare = partial(self._prepare, job)
        archive, variables, submit_command = await run_in_thread(prepare, heartbeat, "starting Spark")
        result = await run_supervised(submit_command, variables, job.folder, heartbeat, job.working_directory)
        discard_if_crashed(archive, result.code)
        return result

    def _prepare(self, job: SparkJob) -> tuple[Path | None, dict[str, str], list[str]]:
        """Return the class-data archive or None, the environment, and the command."""
        java = find_java()
        archive = find_archive(self.settings.storage, java)
        options = " ".join(filter(None, [archive_option(archive) if archive else "", compiler_option(job)]))
        variables = {**job.environment, **environment(self.settings, java, options, built_in=job.built_in)}
        return archive, variables, command(self.settings, job)

    async def warm_up(self) -> None:
        """Do nothing: the engine keeps no process between jobs."""

    async def close(self) -> None:
        """Do nothing: the engine keeps no process between jobs."""
