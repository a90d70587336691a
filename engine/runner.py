"""Run Spark jobs on this worker: choose an engine, wait for a slot, run the job to its end.

How an engine is chosen (`open_engine`): `SPARK_DEPLOY_MODE=cluster` is `ClusterEngine` (YARN or Kubernetes),
`SPARK_ENGINE=connect` is `ConnectEngine` (sessions on a Spark Connect server), and everything else is `SubmitEngine`
(an application for each job, on any master). An engine without a JVM of its own leaves the jobs that need one to
`SubmitEngine`. To add an engine: implement `engine/spark/engine.py::Engine`, return it here, and give it a value of a
setting in `sluice/settings.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.job import JobResult, SparkJob
from engine.process.heartbeat import Heartbeat
from engine.slots import SparkSlots
from engine.spark.cluster import ClusterEngine
from engine.spark.connect import ConnectEngine
from engine.spark.engine import Engine, SubmitEngine
from sluice.settings import Settings


@dataclass(frozen=True)
class Spark:
    """Runs Spark jobs. Needs the worker's settings, its slots for jobs, and the engine that runs them."""

    settings: Settings
    slots: SparkSlots
    engine: Engine

    async def run(self, job: SparkJob, heartbeat: Heartbeat) -> JobResult:
        """Wait for a slot, and run a job.

        Raises:
            BadEnvironment: there is no Java for Spark.
            ServiceUnavailable: the Spark Connect server does not answer.
        """
        async with self.slots.slot(heartbeat, job.pipeline):
            can_run = self.engine.has_jvm or not job.needs_jvm
            engine = self.engine if can_run else SubmitEngine(self.settings)
            return await engine.run(job, heartbeat)


def open_engine(settings: Settings, unreachable: Mapping[str, str]) -> Engine:
    """Return the engine that the settings name.

    Args:
        unreachable: the configuration of a catalog that no server answers, for the warm-up job.
    """
    if settings.spark_deploy_mode == "cluster":
        return ClusterEngine(settings)
    return ConnectEngine(settings, unreachable) if settings.spark_engine == "connect" else SubmitEngine(settings)
