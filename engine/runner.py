"""This worker's Spark: a job goes in, and how it ended comes out."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.java import find_java
from engine.progress import Progress
from engine.submit import SparkJob, command, environment
from engine.supervise import Ended, SparkSlots, run_supervised
from sluice.settings import Settings


@dataclass(frozen=True)
class Spark:
    """Needs the worker's settings, and the room that it has for JVMs."""

    settings: Settings
    slots: SparkSlots

    async def run(self, job: SparkJob, beat: Callable[[Progress], None], where: Path | None = None) -> Ended:
        """Run a job when there is room for it; `where` is its working directory, by default the worker's.

        Raises:
            BadEnvironment: there is no Java for Spark.
        """
        java = find_java()
        async with self.slots.slot(beat):
            words = command(self.settings, job)
            variables = environment(self.settings, java, ours=job.ours)
            return await run_supervised(words, variables, job.folder, beat, where)
