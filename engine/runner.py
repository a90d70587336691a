"""This worker's Spark: a job goes in, and how it ended comes out."""

from dataclasses import dataclass

from engine.job import JobResult, SparkJob
from engine.process.supervise import Heartbeat
from engine.slots import SparkSlots
from engine.spark.cluster import ClusterEngine
from engine.spark.connect import ConnectEngine
from engine.spark.engine import Engine, SubmitEngine
from sluice.settings import Settings


@dataclass(frozen=True)
class Spark:
    """Needs the worker's settings, the room that it has for jobs, and what runs them."""

    settings: Settings
    slots: SparkSlots
    engine: Engine

    async def run(self, job: SparkJob, beat: Heartbeat) -> JobResult:
        """Run a job when there is room for it.

        Raises:
            BadEnvironment: there is no Java for Spark.
            ServiceUnavailable: the Spark Connect server does not answer.
        """
        async with self.slots.slot(beat, job.pipeline):
            engine = self.engine
            if job.classic and isinstance(engine, ConnectEngine):
                engine = SubmitEngine(self.settings)
            return await engine.run(job, beat)


def open_engine(settings: Settings) -> Engine:
    """Return the engine that the settings name."""
    if settings.spark_deploy_mode == "cluster":
        return ClusterEngine(settings)
    return ConnectEngine(settings) if settings.spark_engine == "connect" else SubmitEngine(settings)
