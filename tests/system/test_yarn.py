"""Cluster mode on a real YARN: drivers are found by run and attempt, and the next worker ends leftover drivers."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devstack.jars import install_jars
from devstack.stack import ROOT
from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import WorkerProcess, wait_for
from tests.harness.system import SystemHarness
from tests.harness.yarn import Yarn, yarn

_SLOW = """\
import os, signal, time
from pathlib import Path
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.range(5, numPartitions=1).writeTo("t.slow_on_yarn").create()
flags = Path({flags!r})
before = len(list(flags.iterdir()))
(flags / spark.sparkContext.applicationId).touch()
if before == 1:
    os.kill(os.getppid(), signal.SIGKILL)
time.sleep(1800)
"""
"""A program that kills its own driver the second time."""


@pytest.fixture(scope="module")
def cluster(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    install_jars(ROOT / ".sluice", ["yarn"])
    with yarn(tmp_path_factory.mktemp("yarn"), ROOT / ".sluice" / "jars" / "yarn") as started:
        yield started


@pytest.fixture
def system(system: SystemHarness, cluster: Yarn, request: pytest.FixtureRequest, tmp_path: Path) -> SystemHarness:
    """The harness of an installation that runs its drivers on the cluster."""
    conf = tmp_path / "spark.properties"
    conf.write_text(
        f"spark.executor.memory 512m\nspark.executor.instances 1\nspark.yarn.stagingDir {tmp_path.as_uri()}/staging\n"
    )
    away = {
        "SPARK_MASTER": "yarn",
        "SPARK_DEPLOY_MODE": "cluster",
        "SPARK_DRIVER_MEMORY": "512m",
        "SPARK_PROPERTIES_FILE": str(conf),
        "HADOOP_CONF_DIR": str(cluster.conf),
        "SLUICE_TASK_QUEUE": request.node.name,
    }
    return SystemHarness(tmp_path, {**system.environment, **away})


@pytest.mark.matrix
def test_the_built_in_job_with_its_driver_on_the_cluster(
    system: SystemHarness, cluster: Yarn, lake: LakeReader, tmp_path: Path
) -> None:
    worker = WorkerProcess(system.environment, tmp_path)
    try:
        outcome = system.run(pipeline("yarn", csv_file(tmp_path / "in.csv", [{"id": 1}, {"id": 2}]), "[not_null: id]"))
    finally:
        worker.stop()
    assert (outcome.code, outcome.json["outcome"]) == (0, "published"), outcome
    assert len(lake.rows("t.yarn")) == 2
    (application,) = set(re.findall(r"(application_\d+_\d+) State change", cluster.log))
    assert cluster.ended(application) == "FINISHED"


@pytest.mark.matrix
def test_drivers_that_are_left_are_ended_and_none_is_run_again(
    system: SystemHarness, cluster: Yarn, lake: LakeReader, tmp_path: Path
) -> None:
    """A driver does not end with its worker: the next attempt or a cancel ends it. YARN starts no driver twice."""
    flags, program = tmp_path / "flags", tmp_path / "slow.py"
    flags.mkdir()
    program.write_text(_SLOW.format(flags=str(flags)))

    def applications() -> list[str]:
        return sorted(flag.name for flag in flags.iterdir())

    def wait(true: Callable[[], object]) -> None:
        wait_for(true, lambda: f"{applications()}: {cluster.log[-3000:]}")

    worker = WorkerProcess(system.environment, tmp_path)
    run = system.start(f"name: slow-on-yarn\nwrite: {{job: {program}}}\ntables: [t.slow_on_yarn]\n")
    wait(applications)
    worker.kill()
    assert not cluster.ended(applications()[0])
    following = WorkerProcess(system.environment, tmp_path)
    try:
        wait(lambda: len(applications()) == 3)
        first, second, third = applications()
        assert (cluster.ended(first), cluster.ended(second)) == ("KILLED", "FAILED")
        system.cancel(run)
        outcome = system.wait_for_end(run)
    finally:
        following.stop()
    assert (outcome.json["outcome"], outcome.json["attempts"]) == ("cancelled", 3), outcome
    wait(lambda: cluster.ended(third) == "KILLED")
    assert not re.search(r"appattempt_\d+_\d+_000002", cluster.log)
    assert not lake.branches(outcome.json["run_id"])
