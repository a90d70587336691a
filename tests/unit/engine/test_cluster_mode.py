"""Cluster mode: names of submissions, commands to list and end them, configuration of drivers."""

import re
from pathlib import Path
from typing import get_args

import pytest

from activities.run.job_folder import JobName
from engine.job import JobResult, SparkJob
from engine.process.progress import OutputReader
from engine.runner import open_engine
from engine.spark.cluster import Kubernetes, Yarn, submission_name
from engine.spark.configuration import properties
from engine.spark.job_errors import job_failure
from sluice.errors import BadEnvironment
from sluice.settings import Settings, read_settings

_LISTED = """\
Total number of applications (application-types: [], states: [RUNNING] and tags: [sluice-r]):2
                Application-Id\t    Application-Name\t   Tracking-URL
application_1795316122137_0003\t   sluice wap/x/r/a1\t            N/A
application_1795316122137_0012\t   sluice application_1_2\t       N/A
"""


def job(folder: Path, **more: str) -> SparkJob:
    return SparkJob(Path("job.py"), folder / "write", "wap/x/r/a2", catalog={}, run_id="r", attempt=2, conf=more)


def test_a_submission_is_named_by_run_attempt_job_and_try(tmp_path: Path) -> None:
    assert submission_name(job(tmp_path)) == "sluice-r-a2-write-1"
    assert Yarn().submission_conf(job(tmp_path))["spark.yarn.tags"] == "sluice-r,sluice-r-a2-write-1"
    assert (
        Kubernetes("k8s://x", "n").submission_conf(job(tmp_path))["spark.kubernetes.driver.pod.name"]
        == "sluice-r-a2-write-1"
    )


@pytest.mark.parametrize("name", [*get_args(JobName), "with_underscore"])
def test_kubernetes_accepts_the_name_of_each_job(name: str, tmp_path: Path) -> None:
    submitted = SparkJob(Path("job.py"), tmp_path / name, "wap/x/r/a2", catalog={}, run_id="0b1e-4f", attempt=2)
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", submission_name(submitted))


def test_yarn_ends_exactly_what_it_listed() -> None:
    (ending,) = Yarn().kill_commands("r", _LISTED.splitlines())
    assert ending[-3:] == ["-kill", "application_1795316122137_0003", "application_1795316122137_0012"]
    assert not Yarn().kill_commands("r", _LISTED.splitlines()[:2])


def test_kubernetes_ends_the_pods_of_the_run_alone() -> None:
    cluster = Kubernetes("k8s://https://host:443", "lake")
    assert cluster.list_command("r")[1:] == ["--master", "k8s://https://host:443", "--status", "lake:sluice-r-*"]
    output = ["request for the status of submission lake:sluice-r-* in k8s", "Application status (driver):"]
    for number, phase in enumerate(("Failed", "Running", "Pending"), 1):
        output += [f"\t pod name: sluice-r-a{number}-write-1", "\t namespace: lake", f"\t phase: {phase}"]
    ended = [command[-2:] for command in cluster.kill_commands("r", output)]
    assert ended == [["--kill", f"lake:sluice-r-a{number}-write-1"] for number in (2, 3)]
    assert not cluster.kill_commands("r", ["No applications found."])


def test_a_driver_on_a_cluster_gets_no_path_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "jars" / "spark").mkdir(parents=True)
    (tmp_path / "jars" / "spark" / "iceberg.jar").touch()
    client = properties(Settings.of(sluice_home=tmp_path, spark_master="yarn").spark_jobs, job(tmp_path))
    settings = Settings.of(sluice_home=tmp_path, spark_master="yarn", spark_deploy_mode="cluster")
    cluster = properties(settings.spark_jobs, job(tmp_path, **{"spark.driver.extraClassPath": "theirs.jar"}))
    assert client["spark.submit.deployMode"] == "client" and "iceberg.jar" in client["spark.driver.extraClassPath"]
    assert cluster["spark.submit.deployMode"] == "cluster" and cluster["spark.driver.extraClassPath"] == "theirs.jar"
    assert "iceberg.jar" in cluster["spark.jars"] and cluster["spark.yarn.maxAppAttempts"] == "1"
    assert "spark.driver.memory" not in cluster and "spark.local.dir" not in cluster
    assert type(open_engine(settings.spark_jobs, {})).__name__ == "ClusterEngine"


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({}, r"SPARK_DEPLOY_MODE: SPARK_MASTER=local\[\*\] cannot run the driver of a Python job"),
        ({"SPARK_MASTER": "spark://host:7077"}, "cluster mode needs yarn or k8s"),
        ({"SPARK_MASTER": "yarn", "SPARK_ENGINE": "connect"}, "cluster mode needs SPARK_ENGINE=submit"),
    ],
)
def test_cluster_mode_where_there_is_none(asked: dict[str, str], why: str) -> None:
    with pytest.raises(BadEnvironment, match=why):
        read_settings({"SPARK_DEPLOY_MODE": "cluster", **asked})


def test_a_failure_on_yarn_names_the_command_for_its_log() -> None:
    line = 'Exception in thread "main" SparkException: Application application_17_2 finished with failed status'
    assert str(job_failure(JobResult(1, [line], Path("log")))).endswith(
        "YARN has the log of its driver: yarn logs -applicationId application_17_2"
    )


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("Application report for application_17_0001 (state: ACCEPTED)", "application_17_0001: accepted"),
        ("Application status for spark-5f (phase: Running)", "spark-5f: running"),
    ],
)
def test_an_application_on_a_cluster_shows_its_state(line: str, text: str) -> None:
    reader = OutputReader()
    reader.feed(f"26/11/22 02:56:21 INFO Client: {line}\n".encode())
    assert reader.progress.text == text
