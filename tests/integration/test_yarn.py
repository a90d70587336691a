"""Cluster mode on a real YARN: drivers run there, are looked up by run and attempt, and are ended by whoever comes."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from devstack.jars import install_jars
from devstack.stack import ROOT
from tests.integration.yarn import Yarn, yarn
from tests.support import FrontDoor, Lake, WorkerProcess, csv_file, pipeline, wait_for

_SLOW = """\
import os, time
from pathlib import Path
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.range(5, numPartitions=1).writeTo("t.slow_on_yarn").create()
Path("{folder}", spark.sparkContext.applicationId).touch()
time.sleep(300)
"""


@pytest.fixture(scope="module")
def cluster(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    install_jars(ROOT / ".sluice", ["yarn"])
    with yarn(tmp_path_factory.mktemp("yarn"), ROOT / ".sluice" / "jars" / "yarn") as found:
        yield found


@pytest.fixture
def front(door: FrontDoor, cluster: Yarn, request: pytest.FixtureRequest, tmp_path: Path) -> FrontDoor:
    """The front door of an installation that runs its drivers on the cluster."""
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
    return FrontDoor(tmp_path, {**door.environment, **away})


def test_the_built_in_job_with_its_driver_on_the_cluster(
    front: FrontDoor, cluster: Yarn, lake: Lake, tmp_path: Path
) -> None:
    worker = WorkerProcess(front.environment, tmp_path)
    try:
        said = front.run(pipeline("yarn", csv_file(tmp_path / "in.csv", [{"id": 1}, {"id": 2}]), "[not_null: id]"))
    finally:
        worker.stop()
    assert (said.code, said.json["outcome"]) == (0, "published"), said
    assert len(lake.rows("t.yarn")) == 2
    (application,) = set(re.findall(r"(application_\d+_\d+) State change", cluster.log))
    assert cluster.ended(application) == "FINISHED"


def test_what_is_left_on_the_cluster_is_ended_by_the_next_attempt_and_by_a_cancel(
    front: FrontDoor, cluster: Yarn, lake: Lake, tmp_path: Path
) -> None:
    """A driver does not end with its worker: the attempt after it looks for it first."""
    flags, program = tmp_path / "flags", tmp_path / "slow.py"
    flags.mkdir()
    program.write_text(_SLOW.format(folder=flags))
    worker = WorkerProcess(front.environment, tmp_path)
    run = front.begin(f"name: slow-on-yarn\nwrite: {{job: {program}}}\ntables: [t.slow_on_yarn]\n")
    wait_for(lambda: len(list(flags.iterdir())) == 1, 120, lambda: cluster.log[-3000:])
    worker.kill()
    (first,) = (flag.name for flag in flags.iterdir())
    assert not cluster.ended(first)
    following = WorkerProcess(front.environment, tmp_path)
    try:
        wait_for(lambda: cluster.ended(first), 60, lambda: cluster.log[-3000:])
        wait_for(lambda: len(list(flags.iterdir())) == 2, 120, lambda: cluster.log[-3000:])
        assert cluster.ended(first) == "KILLED"
        (second,) = ({flag.name for flag in flags.iterdir()}) - {first}
        assert front("cancel", run).code == 0
        said = front("watch", run, "--json")
    finally:
        following.stop()
    assert (said.json["outcome"], said.json["attempts"]) == ("cancelled", 2), said
    wait_for(lambda: cluster.ended(second) == "KILLED", 60, lambda: cluster.log[-3000:])
    assert not lake.branches(said.json["run_id"])
