"""Cluster mode: Spark's driver runs on YARN or Kubernetes, and the worker runs a client that waits for it.

Fencing: a driver on a cluster does not end with its worker. The name of its submission therefore contains run, attempt,
job and try. Before each submission, and after each failed job, the engine lists and ends the unfinished submissions of
the run. By then the branch of a dead attempt is deleted, so its driver cannot commit.
"""

import asyncio
import logging
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from engine.job import JobResult, SparkJob
from engine.process.heartbeat import Heartbeat, run_in_thread
from engine.process.supervise import run_supervised
from engine.spark.configuration import properties
from engine.spark.java import find_java
from engine.spark.submit import CODE_ROOT, SPARK_HOME, command, environment
from sluice.errors import ServiceUnavailable
from sluice.setting_groups import SparkJobSettings

_PACKAGES = ("sluice", "spark_jobs")
"""The packages that drivers of built-in jobs import, in addition to those in the lock file."""
_YARN = (
    str(SPARK_HOME / "bin" / "spark-class"),
    *("org.apache.hadoop.yarn.client.cli.ApplicationCLI", "application"),
)
_UNFINISHED = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"

log = logging.getLogger("sluice.cluster")


class Cluster(Protocol):
    """A kind of cluster: its names of submissions, and its commands to list and end the submissions of a run."""

    def submission_conf(self, job: SparkJob) -> dict[str, str]:
        """Return the Spark configuration that names the submission of a job."""

    def list_command(self, run_id: str) -> list[str]:
        """Return the command that lists the submissions of a run."""

    def kill_commands(self, run_id: str, output: Sequence[str]) -> list[list[str]]:
        """Return the commands that end the unfinished submissions in the output of the list command."""


class Yarn:
    """YARN, through its own client, which comes with PySpark and reads HADOOP_CONF_DIR."""

    def submission_conf(self, job: SparkJob) -> dict[str, str]:
        """Return tags of the application: the name of its run, and its own name."""
        return {
            "spark.yarn.tags": f"{_run_name(job.run_id)},{submission_name(job)}",
            "spark.yarn.submit.waitAppCompletion": "true",
        }

    def list_command(self, run_id: str) -> list[str]:
        """Return the command that lists the applications of a run that have not ended."""
        return [*_YARN, "-list", "-appTags", _run_name(run_id), "-appStates", _UNFINISHED]

    def kill_commands(self, run_id: str, output: Sequence[str]) -> list[list[str]]:
        """Return the command that ends the listed applications, if there are any."""
        applications = [match[1] for line in output if (match := re.match(r"\s*(application_\d+_\d+)\s", line))]
        return [[*_YARN, "-kill", *applications]] if applications else []


@dataclass(frozen=True)
class Kubernetes:
    """Kubernetes, through spark-submit, which submits a job as a named pod."""

    master: str
    namespace: str

    def submission_conf(self, job: SparkJob) -> dict[str, str]:
        """Return the name of the driver's pod. Kubernetes refuses a second pod with the same name."""
        return {
            "spark.kubernetes.driver.pod.name": submission_name(job),
            "spark.kubernetes.submission.waitAppCompletion": "true",
        }

    def list_command(self, run_id: str) -> list[str]:
        """Return the command that prints the state of the pods of a run."""
        return self._submit("--status", f"{_run_name(run_id)}-*")

    def kill_commands(self, run_id: str, output: Sequence[str]) -> list[list[str]]:
        """Return the commands that delete the pending and running pods of a run. Ended pods stay, with their logs."""
        fields = [match.groups() for line in output if (match := re.match(r"\s*(pod name|phase): (\S+)", line))]
        pods = [name for (_, name), (_, phase) in pairwise(fields) if phase in ("Pending", "Running")]
        return [self._submit("--kill", pod) for pod in pods if pod.startswith(f"{_run_name(run_id)}-")]

    def _submit(self, option: str, pods: str) -> list[str]:
        master = ("--master", self.master)
        return [str(SPARK_HOME / "bin" / "spark-submit"), *master, option, f"{self.namespace}:{pods}"]


@dataclass(frozen=True)
class ClusterEngine:
    """The engine that runs each job with `spark-submit` in cluster mode.

    The client that waits for the driver runs under a guard on this machine.
    """

    settings: SparkJobSettings
    has_jvm = True

    async def run(self, job: SparkJob, heartbeat: Heartbeat) -> JobResult:
        """Submit an application and wait until it ends.

        Raises:
            ServiceUnavailable: the cluster does not answer.
        """
        cluster = self._cluster(job)
        prepare = partial(self._prepare, job, cluster)
        variables, submit_command = await run_in_thread(prepare, heartbeat, "starting Spark")
        await self._end_earlier_submissions(cluster, job, variables, heartbeat)
        succeeded = False
        try:
            result = await run_supervised(submit_command, variables, job.folder, heartbeat, job.working_directory)
            succeeded = result.code == 0
            return result
        finally:
            if not succeeded:  # the driver may continue without its client
                await asyncio.shield(self._try_to_end_driver(cluster, job, variables, heartbeat))

    async def warm_up(self) -> None:
        """Do nothing: the engine keeps no process between jobs."""

    async def close(self) -> None:
        """Do nothing: the engine keeps no process between jobs."""

    def _prepare(self, job: SparkJob, cluster: Cluster) -> tuple[dict[str, str], list[str]]:
        """Pack the code of a job; return the job's environment and command."""
        variables = {**job.environment, **environment(self.settings, find_java(), built_in=job.built_in)}
        more = {**cluster.submission_conf(job), **(_package_code(job) if job.built_in else {})}
        return variables, command(self.settings, job, more)

    def _cluster(self, job: SparkJob) -> Cluster:
        if self.settings.spark.spark_master.startswith("yarn"):
            return Yarn()
        namespace = properties(self.settings, job).get("spark.kubernetes.namespace", "default")
        return Kubernetes(self.settings.spark.spark_master, namespace)

    async def _end_earlier_submissions(
        self, cluster: Cluster, job: SparkJob, variables: dict[str, str], heartbeat: Heartbeat
    ) -> None:
        """List the submissions of the job's run that have not ended, and end them."""
        listed = await self._run_command(cluster.list_command(job.run_id), job, variables, heartbeat)
        for kill in cluster.kill_commands(job.run_id, listed.tail):
            log.warning("%s: ending its earlier submissions on the cluster", job.branch)
            await self._run_command(kill, job, variables, heartbeat)

    async def _try_to_end_driver(
        self, cluster: Cluster, job: SparkJob, variables: dict[str, str], heartbeat: Heartbeat
    ) -> None:
        try:
            await self._end_earlier_submissions(cluster, job, variables, heartbeat)
        except ServiceUnavailable as error:  # the next submission of the run tries again
            log.warning("%s: %s", job.branch, error)

    async def _run_command(
        self, arguments: list[str], job: SparkJob, variables: dict[str, str], heartbeat: Heartbeat
    ) -> JobResult:
        result = await run_supervised(arguments, variables, job.folder, heartbeat)
        if result.code != 0:
            why = result.tail[-1] if result.tail else f"exit code {result.code}"
            raise ServiceUnavailable(
                f"{self.settings.spark.spark_master} did not answer about earlier submissions of the run: {why}"
            )
        return result


def submission_name(job: SparkJob) -> str:
    """Return the name of a job's submission, made of run, attempt, job and try.

    The name contains no underscore, since Kubernetes refuses a pod with an underscore in its name.
    """
    folder_name = job.folder.name.replace("_", "-")
    return f"{_run_name(job.run_id)}-a{job.attempt}-{folder_name}-{job.try_number}"


def _run_name(run_id: str) -> str:
    return f"sluice-{run_id}"


def _package_code(job: SparkJob) -> dict[str, str]:
    """Pack the modules that a built-in job imports. Spark itself ships the program and the jars."""
    folder = job.folder / "code"
    shutil.rmtree(folder, ignore_errors=True)
    for name in _PACKAGES:
        shutil.copytree(CODE_ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    archive = shutil.make_archive(str(job.folder / "sluice"), "zip", folder)
    shutil.rmtree(folder)
    return {"spark.submit.pyFiles": Path(archive).as_uri()}
