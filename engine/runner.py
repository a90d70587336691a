"""Run Spark jobs on this worker: choose an engine, and run each job to its end.

Jobs wait in a task queue. `open_engine` chooses the engine: `SPARK_DEPLOY_MODE=cluster` selects `ClusterEngine` (YARN
or Kubernetes), `SPARK_ENGINE=connect` selects `ConnectEngine` (sessions on a Spark Connect server), `submit` selects
`SubmitEngine` (an application for each job, on any master), and `auto` selects `AutomaticEngine`, which uses both. An
engine without a JVM of its own leaves the jobs that need a JVM to `SubmitEngine`. To add an engine: implement
`engine/spark/engine.py::Engine`, return it in `open_engine`, and give it a value of `SPARK_ENGINE` in
`sluice/setting_groups.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.job import JobResult, SparkJob
from engine.process.heartbeat import Heartbeat
from engine.spark.automatic import AutomaticEngine
from engine.spark.cluster import ClusterEngine
from engine.spark.connect import ConnectEngine
from engine.spark.engine import Engine, SubmitEngine
from sluice.setting_groups import SparkJobSettings


@dataclass(frozen=True)
class Spark:
    """The Spark of this worker: its settings, and the engine that runs jobs."""

    settings: SparkJobSettings
    engine: Engine

    async def run(self, job: SparkJob, heartbeat: Heartbeat) -> JobResult:
        """Run a job.

        A run gets a Spark of its own after the server that its jobs shared with other jobs crashed. If the job crashes
        this Spark too, the job itself is at fault, and no other job on the server is affected.

        Raises:
            BadEnvironment: there is no Java for Spark.
            ServiceUnavailable: the Spark Connect server does not answer.
            SparkServerCrashed: the Spark Connect server ended under the job.
        """
        can_run = self.engine.has_jvm or not (job.needs_jvm or job.runs_apart)
        engine = self.engine if can_run else SubmitEngine(self.settings)
        return await engine.run(job, heartbeat)


def open_engine(settings: SparkJobSettings, unreachable: Mapping[str, str]) -> Engine:
    """Return the engine that the settings name.

    Args:
        unreachable: the configuration of a catalog that cannot be reached, for the warm-up job.
    """
    if settings.spark.spark_deploy_mode == "cluster":
        return ClusterEngine(settings)
    if settings.spark.spark_engine == "connect":
        return ConnectEngine(settings, unreachable)
    if settings.spark.spark_engine == "auto" and settings.spark.spark_master.startswith("local"):
        built_in = ConnectEngine(settings, unreachable)
        programs = ConnectEngine(settings, unreachable, name="-programs", runs_built_in=False)
        return AutomaticEngine(settings, built_in, programs, SubmitEngine(settings))
    return SubmitEngine(settings)
