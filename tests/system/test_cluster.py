"""Jobs on a real standalone cluster: a master and two workers, from the same package."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.spark.java import find_java
from engine.spark.submit import SPARK_HOME
from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import WorkerProcess, spark_processes, wait_for
from tests.harness.system import SystemHarness

_SLOW = """\
import time
from pathlib import Path
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.range(5, numPartitions=2).writeTo("t.far").create()
flag = Path("{flag}")
if not flag.exists():
    flag.touch()
    time.sleep(1800)
"""


def _port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The cluster's address, and the folder of its logs."""
    folder, port = tmp_path_factory.mktemp("cluster"), _port()
    environment = {**os.environ, "JAVA_HOME": str(find_java()), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"SPARK_WORKER_DIR": str(folder), "SPARK_DAEMON_MEMORY": "256m", "SPARK_HOME": str(SPARK_HOME)}
    master = ["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    ui = ["-c", "1", "-m", "1g", "--host", "127.0.0.1", "--webui-port", "0"]
    worker = ["worker.Worker", f"spark://127.0.0.1:{port}", *ui]
    started = []
    try:
        for number, (daemon, *words) in enumerate((master, worker, worker)):
            with (folder / f"daemon{number}.log").open("wb") as out:
                command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{daemon}", *words]
                started.append(
                    subprocess.Popen(command, env=environment, stdout=out, stderr=out, start_new_session=True)
                )
        log = folder / "daemon0.log"
        wait_for(lambda: log.read_text().count("Registering worker") == 2, log.read_text)
        yield f"spark://127.0.0.1:{port}", folder
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)


@pytest.fixture(scope="module")
def far(
    stack: dict[str, str], cluster: tuple[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    environment = {
        **stack,
        "SLUICE_TASK_QUEUE": "cluster",
        "SPARK_MASTER": cluster[0],
        "SPARK_PROPERTIES_FILE": str(tmp_path_factory.mktemp("conf") / "spark.properties"),
    }
    Path(environment["SPARK_PROPERTIES_FILE"]).write_text(
        "spark.executor.memory 512m\nspark.driver.host 127.0.0.1\nspark.driver.bindAddress 127.0.0.1\n"
    )
    worker = WorkerProcess({**environment, "SPARK_LOCAL_IP": "127.0.0.1"}, tmp_path_factory.mktemp("far"))
    yield environment
    worker.stop()


def test_the_built_in_job_on_a_cluster(
    far: dict[str, str], cluster: tuple[str, Path], system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    system = SystemHarness(tmp_path, {**system.environment, **far})
    ended = system.run(pipeline("cluster", csv_file(tmp_path / "in.csv", [{"id": 1}, {"id": 2}])))
    assert (ended.code, ended.json["outcome"]) == (0, "published"), ended
    assert len(lake.rows("t.cluster")) == 2
    executors = list(cluster[1].glob("app-*/*/stderr"))
    assert executors, "no executor of the cluster took part"
    master = (cluster[1] / "daemon0.log").read_text()
    assert f"Registered app sluice wap/cluster/{ended.json['run_id']}/a1" in master


def test_an_attempt_on_a_cluster_ends_with_its_worker(
    far: dict[str, str], cluster: tuple[str, Path], system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    """A worker that is killed takes its driver along, and the master the driver's executors."""
    own = {**system.environment, **far, "SLUICE_TASK_QUEUE": "cluster-2"}
    system, flag = SystemHarness(tmp_path, own), tmp_path / "flag"
    worker = WorkerProcess(own, tmp_path)
    (tmp_path / "far.py").write_text(_SLOW.format(flag=flag))
    run = system.start(f"name: far\nwrite: {{job: {tmp_path / 'far.py'}}}\ntables: [t.far]\n")
    wait_for(flag.exists)
    run_id = str(system.status(run)["run_id"])
    worker.kill()
    wait_for(lambda: not spark_processes(run_id), lambda: "the driver is left")
    log = cluster[1] / "daemon0.log"
    wait_for(lambda: "Removing app app-" in log.read_text(), log.read_text)
    following = WorkerProcess(own, tmp_path)
    try:
        ended = system.wait_for_end(run)
    finally:
        following.stop()
    assert (ended.code, ended.json["outcome"], ended.json["attempts"]) == (0, "published", 2), ended
    assert len(lake.rows("t.far")) == 5
