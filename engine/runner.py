"""This worker's Spark: a job goes in, and how it ended comes out."""

from collections.abc import Callable
from dataclasses import dataclass

from engine.archive import archive_option, find_archive, forget_if_crashed
from engine.java import find_java
from engine.job import Ended, SparkJob
from engine.progress import Progress
from engine.submit import command, environment, quick_option
from engine.supervise import SparkSlots, run_supervised
from sluice.settings import Settings


@dataclass(frozen=True)
class Spark:
    """Needs the worker's settings, and the room that it has for JVMs."""

    settings: Settings
    slots: SparkSlots

    async def run(self, job: SparkJob, beat: Callable[[Progress], None]) -> Ended:
        """Run a job when there is room for it.

        Raises:
            BadEnvironment: there is no Java for Spark.
        """
        java = find_java()
        async with self.slots.slot(beat):
            archive = find_archive(self.settings, java)
            options = " ".join(filter(None, [archive_option(archive) if archive else "", quick_option(job)]))
            variables = environment(self.settings, java, options, ours=job.ours)
            ended = await run_supervised(command(self.settings, job), variables, job.folder, beat, job.where)
            forget_if_crashed(archive, ended.code)
            return ended
