"""The engines that run Spark jobs: the same jobs, logs, progress and end, whichever it is."""

from dataclasses import dataclass
from typing import Protocol

from engine.job import JobResult, SparkJob
from engine.process.supervise import Heartbeat, run_supervised
from engine.spark.class_data_archive import archive_option, discard_if_crashed, find_archive
from engine.spark.java import find_java
from engine.spark.submit import command, environment, quick_option
from sluice.settings import Settings


class Engine(Protocol):
    """Runs a job to its end, under supervision. Cancelled, it leaves nothing of the job behind."""

    async def run(self, job: SparkJob, beat: Heartbeat) -> JobResult:
        """Run a job; call `beat` with its progress every second.

        Raises:
            BadEnvironment: what the engine needs is not there.
            ServiceUnavailable: its server does not answer.
        """

    async def warm_up(self) -> None:
        """Get ready what jobs would have to wait for; failing is no error yet."""

    async def close(self) -> None:
        """End what was kept ready."""


@dataclass(frozen=True)
class SubmitEngine:
    """`spark-submit`, on whatever master: an application for each job."""

    settings: Settings

    async def run(self, job: SparkJob, beat: Heartbeat) -> JobResult:
        """Start an application and see it to its end."""
        java = find_java()
        archive = find_archive(self.settings, java)
        options = " ".join(filter(None, [archive_option(archive) if archive else "", quick_option(job)]))
        variables = environment(self.settings, java, options, ours=job.ours)
        ended = await run_supervised(command(self.settings, job), variables, job.folder, beat, job.where)
        discard_if_crashed(archive, ended.code)
        return ended

    async def warm_up(self) -> None:
        """Nothing is kept between jobs."""

    async def close(self) -> None:
        """Nothing is kept between jobs."""
