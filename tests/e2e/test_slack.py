"""Slack: one message for a run that waits and one for each ending. Slack's answers change no outcome.

A local server that implements Slack's API takes its place.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice.settings import read_settings
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import WorkerProcess, wait_for
from tests.harness.slack import Slack
from tests.harness.system import SystemHarness

TOKEN = "xoxb-secret-token"


@pytest.fixture
def slack() -> Iterator[Slack]:
    with Slack() as server:
        yield server


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
        "SLACK_API_URL": slack.url,
    }
    system = SystemHarness(tmp_path, environment, spark_queue=read_settings(warm_stack).installation.spark_queue)
    worker = WorkerProcess(environment, tmp_path)
    try:
        source = csv_file(tmp_path / "told.csv", [{"id": 1}])
        run = system.start(pipeline("told", source, "[row_count: 1]", "approval: {timeout: 1h}"))
        system.wait_for_stage(run, "waiting for approval")
        wait_for(lambda: bool(slack.messages))  # the stage changes first: Slack must not break before it has answered
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
    assert len(endings) == 3  # a limited number of tries
    for log in tmp_path.glob("**/*.log"):
        assert TOKEN not in log.read_text()
