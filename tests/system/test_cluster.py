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
    """The cluster's address and the folder of its logs."""
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


@pytest.fixture
def far(system: SystemHarness, cluster: tuple[str, Path], tmp_path: Path) -> SystemHarness:
    """The harness of an installation whose Spark runs on the cluster."""
    conf = tmp_path / "spark.properties"
    conf.write_text("spark.executor.memory 512m\nspark.driver.host 127.0.0.1\nspark.driver.bindAddress 127.0.0.1\n")
    away = {"SPARK_MASTER": cluster[0], "SPARK_PROPERTIES_FILE": str(conf), "SPARK_LOCAL_IP": "127.0.0.1"}
    return SystemHarness(tmp_path, {**system.environment, **away, "SLUICE_TASK_QUEUE": "cluster"})


@pytest.mark.matrix
def test_an_attempt_on_a_cluster_ends_with_its_worker(
    far: SystemHarness, cluster: tuple[str, Path], lake: LakeReader, tmp_path: Path
) -> None:
    """A killed worker's driver ends with it, and the master ends the driver's executors. Both loads take part."""
    flag = tmp_path / "flag"
    worker = WorkerProcess(far.environment, tmp_path)
    (tmp_path / "far.py").write_text(_SLOW.format(flag=flag))
    run = far.start(f"name: far\nwrite: {{job: {tmp_path / 'far.py'}}}\ntables: [t.far]\n")
    wait_for(flag.exists)
    run_id = str(far.status(run)["run_id"])
    worker.kill()
    wait_for(lambda: not spark_processes(run_id), lambda: "the driver is left")
    log = cluster[1] / "daemon0.log"
    wait_for(lambda: "Removing app app-" in log.read_text(), log.read_text)
    following = WorkerProcess(far.environment, tmp_path)
    try:
        ended = far.wait_for_end(run)
        built_in = far.run(pipeline("cluster", csv_file(tmp_path / "in.csv", [{"id": 1}, {"id": 2}])))
    finally:
        following.stop()
    assert (ended.code, ended.json["outcome"], ended.json["attempts"]) == (0, "published", 2), ended
    assert len(lake.rows("t.far")) == 5
    assert (built_in.code, built_in.json["outcome"]) == (0, "published"), built_in
    assert len(lake.rows("t.cluster")) == 2
    assert list(cluster[1].glob("app-*/*/stderr")), "no executor of the cluster took part"
    assert f"Registered app sluice wap/cluster/{built_in.json['run_id']}/a1" in log.read_text()
