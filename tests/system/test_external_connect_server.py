"""Jobs in sessions on an operator's Spark Connect server: with a token, alive or not."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from engine.spark.configuration import application, write_properties
from engine.spark.java import find_java
from engine.spark.submit import environment, submit
from sluice.settings import read_settings
from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import WorkerProcess, wait_for
from tests.harness.system import SystemHarness

_TOKEN = "a-token-of-theirs"
_SLOW = """\
import time
from pathlib import Path
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.range(5).writeTo("t.theirs_too").create()
flag = Path("{flag}")
if not flag.exists():
    flag.touch()
    spark.sql("SELECT sum(a.id * b.id) FROM range(1000000) a CROSS JOIN range(1000000) b").collect()
"""


class ExternalServer:
    """A Spark Connect server as an operator would start one."""

    def __init__(self, stack: Mapping[str, str], folder: Path) -> None:
        self._settings, self._folder = read_settings(stack), folder
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            self.port = int(unused.getsockname()[1])
        self.start()

    def start(self) -> None:
        """Start the server, possibly again, and wait until it answers."""
        properties = {
            **application(self._settings.spark_jobs, self._folder),
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.connect.authenticate.token": _TOKEN,
        }
        server = "org.apache.spark.sql.connect.service.SparkConnectServer"
        words = submit(
            write_properties(self._folder / "spark.properties", properties), "--class", server, "spark-internal"
        )
        with (self._folder / "server.log").open("ab") as log:
            variables = environment(self._settings.spark_jobs, find_java())
            self._process = subprocess.Popen(words, env=variables, stdout=log, stderr=log, start_new_session=True)
        wait_for(self._answers, (self._folder / "server.log").read_text)

    def kill(self) -> None:
        """Kill the server."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)

    def _answers(self) -> bool:
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture(scope="module")
def external_server(stack: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExternalServer]:
    server = ExternalServer(stack, tmp_path_factory.mktemp("elsewhere"))
    yield server
    server.kill()


@pytest.fixture(scope="module")
def own(
    stack: dict[str, str], external_server: ExternalServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    variables = {
        **stack,
        "SLUICE_TASK_QUEUE": "elsewhere",
        "SPARK_ENGINE": "connect",
        "SPARK_CONNECT_URL": f"sc://localhost:{external_server.port}/;token={_TOKEN}",
    }
    worker = WorkerProcess(variables, tmp_path_factory.mktemp("own"))
    yield variables
    worker.stop()
    assert _TOKEN not in worker.log.read_text()


def test_the_built_in_job(own: dict[str, str], system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    system = SystemHarness(tmp_path, {**system.environment, **own})
    ended = system.run_command(pipeline("beyond", csv_file(tmp_path / "in.csv", [{"id": 1}, {"id": 2}])))
    assert (ended.code, ended.json["outcome"]) == (0, "published"), ended
    assert len(lake.rows("t.beyond")) == 2
    assert _TOKEN not in ended.out + ended.err


def test_a_server_that_dies_and_comes_back(
    own: dict[str, str], external_server: ExternalServer, system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    system, flag = SystemHarness(tmp_path, {**system.environment, **own}), tmp_path / "flag"
    (tmp_path / "slow.py").write_text(_SLOW.format(flag=flag))
    run = system.start(f"name: theirs-too\nwrite: {{job: {tmp_path / 'slow.py'}}}\ntables: [t.theirs_too]\n")
    wait_for(flag.exists)
    external_server.kill()
    time.sleep(3)
    assert system.status(run)["outcome"] is None
    external_server.start()
    ended = system.wait_for_end(run)
    assert (ended.code, ended.json["outcome"], ended.json["attempts"]) == (0, "published", 2), ended
    assert len(lake.rows("t.theirs_too")) == 5
