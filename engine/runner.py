"""Run Spark jobs on this worker: choose an engine, and run the job to its end. Jobs wait for it in a task queue.

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
from engine.spark.cluster import ClusterEngine
from engine.spark.connect import ConnectEngine
from engine.spark.engine import Engine, SubmitEngine
from sluice.settings import Settings


@dataclass(frozen=True)
class Spark:
    """Runs Spark jobs. Needs the worker's settings, and the engine that runs them."""

    settings: Settings
    engine: Engine

    async def run(self, job: SparkJob, heartbeat: Heartbeat) -> JobResult:
        """Run a job.

        A run whose jobs shared a server that crashed gets a Spark of its own: if its job crashes that too, it is the
        job's failure, and its neighbours on the server are left alone.

        Raises:
            BadEnvironment: there is no Java for Spark.
            ServiceUnavailable: the Spark Connect server does not answer.
            SparkServerCrashed: the Spark Connect server ended under the job.
        """
        can_run = self.engine.has_jvm or not (job.needs_jvm or job.runs_apart)
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
