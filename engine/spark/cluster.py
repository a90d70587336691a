"""Cluster mode: the driver runs on YARN or Kubernetes, so the cluster is asked about it, and told to end it.

A job's submission is named by run, attempt, job and try. Before each, what is left of the run is looked up and ended:
a driver on a cluster does not end with its worker. Its branch is gone by then, so that it could commit nothing more.
"""

import asyncio
import logging
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from engine.job import JobResult, SparkJob
from engine.process.supervise import Heartbeat, run_supervised
from engine.spark.configuration import properties
from engine.spark.java import find_java
from engine.spark.submit import INTERNAL, SPARK_HOME, command, environment
from sluice.errors import ServiceUnavailable
from sluice.settings import Settings

_PACKAGES = ("sluice", "spark_jobs")
"""What the drivers of Sluice's own jobs import, beside what its lock file names."""
_YARN = (
    str(SPARK_HOME / "bin" / "spark-class"),
    *("org.apache.hadoop.yarn.client.cli.ApplicationCLI", "application"),
)
_UNFINISHED = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"

log = logging.getLogger("sluice.cluster")


class Cluster(Protocol):
    """A kind of cluster: how a submission is named there, and what finds and ends those of a run."""

    def naming(self, job: SparkJob) -> dict[str, str]:
        """Return the configuration by which a job can be looked up."""

    def looking(self, run_id: str) -> list[str]:
        """Return the command that prints what is left of a run."""

    def ending(self, run_id: str, printed: Sequence[str]) -> list[list[str]]:
        """Return the commands that end what was printed, as far as it did not end by itself."""


class Yarn:
    """YARN, by its own client, which comes with PySpark and reads HADOOP_CONF_DIR."""

    def naming(self, job: SparkJob) -> dict[str, str]:
        """Tag the application with its run, and with its own name."""
        return {
            "spark.yarn.tags": f"{_run(job.run_id)},{submission(job)}",
            "spark.yarn.submit.waitAppCompletion": "true",
        }

    def looking(self, run_id: str) -> list[str]:
        """List the run's applications that did not end."""
        return [*_YARN, "-list", "-appTags", _run(run_id), "-appStates", _UNFINISHED]

    def ending(self, run_id: str, printed: Sequence[str]) -> list[list[str]]:
        """Kill the applications that were listed."""
        found = [match[1] for line in printed if (match := re.match(r"\s*(application_\d+_\d+)\s", line))]
        return [[*_YARN, "-kill", *found]] if found else []


@dataclass(frozen=True)
class Kubernetes:
    """Kubernetes, by spark-submit, whose submissions are pods with names."""

    master: str
    namespace: str

    def naming(self, job: SparkJob) -> dict[str, str]:
        """Name the driver's pod; a second one of that name would be refused."""
        return {
            "spark.kubernetes.driver.pod.name": submission(job),
            "spark.kubernetes.submission.waitAppCompletion": "true",
        }

    def looking(self, run_id: str) -> list[str]:
        """Print the state of the run's pods."""
        return self._submit("--status", f"{_run(run_id)}-*")

    def ending(self, run_id: str, printed: Sequence[str]) -> list[list[str]]:
        """Delete the run's pods that wait or run; those that ended keep their logs."""
        facts = [match.groups() for line in printed if (match := re.match(r"\s*(pod name|phase): (\S+)", line))]
        pods = [name for (_, name), (_, phase) in pairwise(facts) if phase in ("Pending", "Running")]
        return [self._submit("--kill", pod) for pod in pods if pod.startswith(f"{_run(run_id)}-")]

    def _submit(self, what: str, pods: str) -> list[str]:
        master = ("--master", self.master)
        return [str(SPARK_HOME / "bin" / "spark-submit"), *master, what, f"{self.namespace}:{pods}"]


@dataclass(frozen=True)
class ClusterEngine:
    """`spark-submit` in cluster mode. Here runs a client that waits for the driver, under the same guard."""

    settings: Settings

    async def run(self, job: SparkJob, beat: Heartbeat) -> JobResult:
        """Submit an application and see it to its end.

        Raises:
            ServiceUnavailable: the cluster does not answer.
        """
        variables = environment(self.settings, find_java(), ours=job.ours)
        cluster = self._cluster(job)
        await self._end_left(cluster, job, variables, beat)
        more = {**cluster.naming(job), **(_our_code(job) if job.ours else {})}
        ended = False
        try:
            found = await run_supervised(command(self.settings, job, more), variables, job.folder, beat, job.where)
            ended = found.code == 0
            return found
        finally:
            if not ended:  # the driver may run on without the client that waited for it
                await asyncio.shield(self._end_after(cluster, job, variables, beat))

    async def warm_up(self) -> None:
        """Nothing is kept between jobs."""

    async def close(self) -> None:
        """Nothing is kept between jobs."""

    def _cluster(self, job: SparkJob) -> Cluster:
        if self.settings.spark_master.startswith("yarn"):
            return Yarn()
        namespace = properties(self.settings, job).get("spark.kubernetes.namespace", "default")
        return Kubernetes(self.settings.spark_master, namespace)

    async def _end_left(self, cluster: Cluster, job: SparkJob, variables: dict[str, str], beat: Heartbeat) -> None:
        """Look up what is left of the job's run, and end it."""
        left = await self._asked(cluster.looking(job.run_id), job, variables, beat)
        for ending in cluster.ending(job.run_id, left.tail):
            log.warning("%s: ending what is left of it on the cluster", job.branch)
            await self._asked(ending, job, variables, beat)

    async def _asked(self, words: list[str], job: SparkJob, variables: dict[str, str], beat: Heartbeat) -> JobResult:
        found = await run_supervised(words, variables, job.folder, beat)
        if found.code != 0:
            said = found.tail[-1] if found.tail else f"exit code {found.code}"
            raise ServiceUnavailable(f"{self.settings.spark_master} cannot be asked what is left of the run: {said}")
        return found

    async def _end_after(self, cluster: Cluster, job: SparkJob, variables: dict[str, str], beat: Heartbeat) -> None:
        try:
            await self._end_left(cluster, job, variables, beat)
        except ServiceUnavailable as error:  # the next submission of the run looks again
            log.warning("%s: %s", job.branch, error)


def submission(job: SparkJob) -> str:
    """Return the name of a job's submission, which follows from run, attempt, job and try."""
    return f"{_run(job.run_id)}-a{job.attempt}-{job.folder.name}-{job.tries}"


def _run(run_id: str) -> str:
    return f"sluice-{run_id}"


def _our_code(job: SparkJob) -> dict[str, str]:
    """Pack what our own jobs import; the program itself and the jars Spark ships by itself."""
    beside = job.folder / "code"
    shutil.rmtree(beside, ignore_errors=True)
    for name in _PACKAGES:
        shutil.copytree(INTERNAL / name, beside / name, ignore=shutil.ignore_patterns("__pycache__"))
    packed = shutil.make_archive(str(job.folder / "sluice"), "zip", beside)
    shutil.rmtree(beside)
    return {"spark.submit.pyFiles": Path(packed).as_uri()}
