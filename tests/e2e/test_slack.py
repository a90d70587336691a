"""Slack: one message for a run that waits and one for each ending; whatever Slack does changes no outcome.

Its far side is a local server that speaks its API.
"""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from sluice.settings import read_settings
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import WorkerProcess, wait_for
from tests.harness.system import SystemHarness

TOKEN = "xoxb-secret-token"


class Slack(HTTPServer):
    """Takes messages, or refuses them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.messages: list[dict[str, Any]] = []
        self.status = 200
        self.answer: dict[str, Any] = {"ok": True}


class _Handler(BaseHTTPRequestHandler):
    server: Slack

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = self.headers["Content-Type"].startswith("application/x-www-form-urlencoded")
        fields = {key: values[0] for key, values in parse_qs(body).items()} if form else json.loads(body)
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(self.server.answer).encode())
        self.server.messages.append({**fields, "path": self.path, "authorization": self.headers["Authorization"]})

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def slack() -> Iterator[Slack]:
    server = Slack()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_people_are_told_and_a_broken_slack_changes_nothing(
    system: SystemHarness, slack: Slack, warm_stack: dict[str, str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    environment = {
        **system.environment,
        "SLUICE_TASK_QUEUE": request.node.name,
        "SLUICE_WORKER_ROLE": "control",
        "SLACK_TOKEN": TOKEN,
        "SLACK_CHANNEL": "#loads",
        "SLACK_API_URL": f"http://127.0.0.1:{slack.server_address[1]}/api/",
    }
    system = SystemHarness(tmp_path, environment, spark_queue=read_settings(warm_stack).spark_queue)
    worker = WorkerProcess(environment, tmp_path)
    try:
        source = csv_file(tmp_path / "told.csv", [{"id": 1}])
        run = system.start(pipeline("told", source, "[row_count: 1]", "approval: {timeout: 1h}"))
        system.wait_for_stage(run, "waiting for approval")
        wait_for(lambda: bool(slack.messages))  # the stage comes first: Slack is not to break before it answered
        slack.status, slack.answer = 500, {"ok": False, "error": "fatal_error"}
        system.approve(run)
        ended = system.wait_for_end(run)
    finally:
        worker.stop()
    assert (ended.code, ended.json["outcome"]) == (0, "published")
    waiting, *endings = slack.messages
    assert waiting["path"] == "/api/chat.postMessage" and waiting["authorization"] == f"Bearer {TOKEN}"
    assert (waiting["channel"], waiting["text"]) == ("#loads", ":raised_hand: told waits for approval")
    assert f"run_workflow.py approve {run}" in str(waiting["blocks"])
    assert {message["text"] for message in endings} == {":white_check_mark: told: published"}
    assert len(endings) == 3  # tried, bounded
    for log in tmp_path.glob("**/*.log"):
        assert TOKEN not in log.read_text()
