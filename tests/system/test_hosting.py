"""Workers in an operator's set-up: two queues, versions, a graceful end, logs, metrics, traces."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests
from temporalio.api.workflowservice.v1 import SetWorkerDeploymentCurrentVersionRequest
from temporalio.client import Client
from temporalio.service import RPCError

from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import WorkerProcess, spark_processes, wait_for
from tests.harness.system import SystemHarness

ROWS = [{"id": 1}, {"id": 2}]


@pytest.fixture
def sink() -> Iterator[tuple[str, list[bytes]]]:
    """A collector of traces that arrive by OTLP over HTTP."""
    got: list[bytes] = []

    class Collect(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collect)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1/traces", got
    server.shutdown()


def test_control_and_spark_on_queues_of_their_own(
    system: SystemHarness, lake: LakeReader, sink: tuple[str, list[bytes]], tmp_path: Path
) -> None:
    """The worker that runs Spark has no publisher's token. Logs, metrics and traces report what happens."""
    common = {**system.environment, "SLUICE_TASK_QUEUE": "split"}
    address = "127.0.0.1:19464"
    telling = {"SLUICE_LOG_FORMAT": "json", "SLUICE_METRICS_ADDRESS": address, "SLUICE_TRACES": sink[0]}
    control = WorkerProcess({**common, **telling, "SLUICE_WORKER_ROLE": "control"}, tmp_path)
    alone = {**common, "SLUICE_WORKER_ROLE": "spark", "NESSIE_PUBLISHER_TOKEN_FILE": ""}
    spark = WorkerProcess(alone, tmp_path)
    try:
        ended = SystemHarness(tmp_path, common).run(pipeline("split", csv_file(tmp_path / "in.csv", ROWS)))
        assert ended.json["outcome"] == "published", ended
        assert len(lake.rows("t.split")) == 2
        metrics = requests.get(f"http://{address}/metrics", timeout=10).text
        outcome = next(line for line in metrics.splitlines() if line.startswith("sluice_runs{"))
        assert 'outcome="published"' in outcome and outcome.endswith(" 1")
        rows = next(line for line in metrics.splitlines() if line.startswith("sluice_rows_published{"))
        assert rows.endswith(" 2") and "sluice_audit_time" in metrics and "temporal_" in metrics
    finally:
        spark.stop()
        control.stop()
    lines = [json.loads(line) for line in control.log.read_text().splitlines() if line.startswith("{")]
    publishing = [line for line in lines if line.get("activity") == "publish_branch"]
    assert publishing and {line["run"] for line in publishing} == {ended.json["run_id"]}
    assert publishing[0]["attempt"] == "1" and publishing[0]["branch"].endswith("/a1")
    assert any(b"publish_branch" in body for body in sink[1])


def test_a_worker_that_is_asked_to_end_may_let_spark_finish(system: SystemHarness, tmp_path: Path) -> None:
    environment = {**system.environment, "SLUICE_TASK_QUEUE": "graceful"}
    system = SystemHarness(tmp_path, environment)
    worker = WorkerProcess({**environment, "SLUICE_SHUTDOWN_TIMEOUT": "90"}, tmp_path)
    run = system.start(pipeline("graceful", csv_file(tmp_path / "in.csv", ROWS)))
    run_id = str(system.wait_for_stage(run, "writing")["run_id"])
    wait_for(lambda: spark_processes(run_id, "SparkSubmit"))
    worker.process.terminate()
    worker.process.wait(120)
    assert not spark_processes(run_id)
    following = WorkerProcess(environment, tmp_path)
    try:
        ended = system.wait_for_end(run).json
        assert (ended["outcome"], ended["attempts"]) == ("published", 1)
    finally:
        following.stop()


async def test_a_run_stays_with_the_version_that_it_began_with(
    system: SystemHarness, client: Client, tmp_path: Path
) -> None:
    environment = {**system.environment, "SLUICE_TASK_QUEUE": "versions", "SLUICE_INSTALLATION": "versions"}
    system = SystemHarness(tmp_path, environment)

    async def current(build: str) -> None:
        request = SetWorkerDeploymentCurrentVersionRequest(
            namespace=client.namespace, deployment_name="sluice-versions", build_id=build
        )
        for _ in range(40):
            try:
                await client.workflow_service.set_worker_deployment_current_version(request)
                return
            except RPCError:
                time.sleep(0.5)  # the server does not have this version yet
        raise AssertionError(f"{build} did not become current")

    async def build_of(run: str) -> str:
        description = await client.get_workflow_handle(run).describe()
        info = description.raw_description.workflow_execution_info.versioning_info
        return str(info.deployment_version.build_id or info.version)

    one = WorkerProcess({**environment, "SLUICE_BUILD_ID": "one"}, tmp_path)
    two = None
    try:
        await current("one")
        more = "approval: {timeout: 1h}"
        (tmp_path / "zones").mkdir()
        zone = f"name: zone\nwrite: {{source: {{format: csv}}}}\ntables: [i.zone]\narrival: {{from: {tmp_path}}}\n"
        (tmp_path / "zones" / "zone.yml").write_text(zone)
        assert system.command("deploy", str(tmp_path / "zones"), "--yes").code == 0
        old = system.start(pipeline("old-version", csv_file(tmp_path / "old.csv", ROWS), more=more))
        system.wait_for_stage(old, "waiting for approval")
        two = WorkerProcess({**environment, "SLUICE_BUILD_ID": "two"}, tmp_path)
        await current("two")
        new = system.run(pipeline("new-version", csv_file(tmp_path / "new.csv", ROWS))).json
        assert new["outcome"] == "published"
        system.approve(old)
        assert system.wait_for_end(old).json["outcome"] == "published"
        one.stop()
        assert system.command("pause", "zone", "--note", "a landing zone has no end, and goes on at once").code == 0
        assert system.command("arrivals", "zone").code == 0
        assert "one" in await build_of(old) and "two" in await build_of(new["workflow_id"])
    finally:
        one.stop()
        if two:
            two.stop()
