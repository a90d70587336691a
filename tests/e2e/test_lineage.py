"""OpenLineage events of whole runs at a real receiver, valid by the specification. No event changes a run."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sluice.settings import read_settings
from tests.harness.lake import LakeReader
from tests.harness.lineage import LineageReceiver, problems
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import WorkerProcess
from tests.harness.system import SystemHarness

KEY = "lineage-key-5up3r"
PARENT = "0190c0d5-7a8b-7c3d-9e0f-112233445566"
BOUND = 30
"""Maximum delay of a run's end by a receiver that does not answer, in seconds, as docs/lineage.md states it."""
SLOW_JOB = "from pyspark.sql import SparkSession\nSparkSession.builder.getOrCreate()\nimport time\ntime.sleep(600)\n"


@contextmanager
def sending(
    name: str, url: str, system: SystemHarness, warm_stack: dict[str, str], folder: Path
) -> Iterator[SystemHarness]:
    """Run a worker that sends events. Its Spark is the warm one."""
    environment = {
        **system.environment,
        "SLUICE_TASK_QUEUE": name,
        "SLUICE_WORKER_ROLE": "control",
        "OPENLINEAGE_URL": url,
        "OPENLINEAGE_API_KEY": KEY,
        "OPENLINEAGE_NAMESPACE": "tests",
    }
    worker = WorkerProcess(environment, folder)
    try:
        yield SystemHarness(folder, environment, spark_queue=read_settings(warm_stack).installation.spark_queue)
    finally:
        worker.stop()


@pytest.fixture
def receiver() -> Iterator[LineageReceiver]:
    with LineageReceiver() as server:
        yield server


def events_of(receiver: LineageReceiver, run_id: str) -> list[dict[str, Any]]:
    events = [event for event in receiver.events if event["run"]["runId"] == run_id]
    assert [problem for event in events for problem in problems(event)] == []
    return events


def test_runs_of_every_ending(
    system: SystemHarness,
    receiver: LineageReceiver,
    lake: LakeReader,
    warm_stack: dict[str, str],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    rows: list[dict[str, Any]] = [{"id": 1, "kind": "a"}, {"id": 2, "kind": None}]
    source = csv_file(tmp_path / "in" / "lineage.csv", rows)
    with sending(request.node.name, receiver.url, system, warm_stack, tmp_path) as runs:
        published = runs.run(
            pipeline("lineage", source, "[not_null: id, not_null: {column: kind, severity: warn}]"),
            OPENLINEAGE_PARENT_ID=f"airflow/dag.task/{PARENT}",
        )
        kept_out = runs.run(pipeline("lineage-out", source, "[not_null: kind]"))
        failed = runs.run("name: lineage-bad\nwrite: {mode: sql, statements: [DELETE FROM t.nothing WHERE id = 1]}\n"
                          "tables: [t.nothing]\n")  # fmt: skip
        (tmp_path / "slow.py").write_text(SLOW_JOB)
        cancelled = runs.start(f"name: lineage-slow\nwrite: {{job: {tmp_path / 'slow.py'}}}\ntables: [t.lineage]\n")
        runs.wait_for_stage(cancelled, "writing")
        runs.cancel(cancelled)
        stopped = runs.wait_for_end(cancelled)
    assert set(receiver.keys) == {f"Bearer {KEY}"}

    assert published.json["outcome"] == "published"
    start, running, complete = events_of(receiver, published.json["run_id"])
    assert [each["eventType"] for each in (start, running, complete)] == ["START", "RUNNING", "COMPLETE"]
    parents = [each["run"]["facets"]["parent"]["run"]["runId"] for each in (start, running, complete)]
    assert parents == [PARENT] * 3
    assert (start["job"]["namespace"], start["job"]["name"]) == ("tests", "lineage")
    assert [(each["namespace"], each["name"]) for each in start["inputs"]] == [("file", str(source))]
    assert start["outputs"] == running["outputs"] == []
    (table,) = complete["outputs"]
    assert table["facets"]["symlinks"]["identifiers"][0]["name"] == "t.lineage"
    assert {each["name"] for each in table["facets"]["schema"]["fields"]} == {"id", "kind"}
    assert table["outputFacets"]["outputStatistics"]["rowCount"] == 2
    verdicts = {each["column"]: each["success"] for each in table["facets"]["dataQualityAssertions"]["assertions"]}
    assert verdicts == {"id": True, "kind": False}
    assert len(lake.rows("t.lineage")) == 2

    assert kept_out.json["outcome"] == "quarantined"
    *_, abort = events_of(receiver, kept_out.json["run_id"])
    assert (abort["eventType"], abort["outputs"]) == ("ABORT", [])
    assert [each["status"] for each in abort["run"]["facets"]["test"]["tests"]] == ["fail"]

    assert failed.json["outcome"] == "failed"
    *_, fail = events_of(receiver, failed.json["run_id"])
    assert (fail["eventType"], fail["outputs"]) == ("FAIL", [])
    assert fail["run"]["facets"]["errorMessage"]["message"] == failed.json["reason"]

    assert stopped.json["outcome"] == "cancelled"
    assert receiver.types(stopped.json["run_id"]) == ["START", "ABORT"]
    events_of(receiver, stopped.json["run_id"])
    for log in tmp_path.glob("**/*.log"):
        assert KEY not in log.read_text()


@pytest.mark.slow
def test_a_receiver_in_trouble_changes_no_run(
    system: SystemHarness,
    receiver: LineageReceiver,
    warm_stack: dict[str, str],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    receiver.status = 500
    with sending(request.node.name, receiver.url, system, warm_stack, tmp_path) as runs:
        run = runs.start(pipeline("trouble", csv_file(tmp_path / "in.csv", [{"id": 1}])))
        runs.wait_for_stage(run, "ended")
        began = time.monotonic()
        ended = runs.wait_for_end(run)
        delay = time.monotonic() - began
    assert (ended.code, ended.json["outcome"]) == (0, "published")
    assert delay < BOUND + 10  # a busy machine may need some time for an end
    tried = receiver.types(ended.json["run_id"])
    assert 2 <= tried.count("COMPLETE") <= 3, "tried again, and given up"
    warnings = [log.read_text() for log in tmp_path.glob("worker-*.log")]
    assert any("an OpenLineage event was not sent" in text for text in warnings)
