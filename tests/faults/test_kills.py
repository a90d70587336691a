"""Processes are killed: afterwards main has exactly the rows that it should, and no process still runs."""

import os
import signal
from pathlib import Path

import pytest

from tests.harness.faults import FaultHarness, on_both_catalogs
from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import spark_processes, wait_for

ROWS = [{"id": number, "half": number // 2} for number in range(1000)]

_BEFORE_IT_ENDS = 30
"""Maximum time for Spark to end with its worker, in seconds: shorter than its job would take on a slow machine."""


def _start_until_spark_works(faults: FaultHarness, stage: str, text: str) -> tuple[str, str]:
    """Start a run and wait until its Spark works in a stage; return its workflow id and run id."""
    run = faults.start(text)
    run_id = str(faults.wait_for_stage(run, stage)["run_id"])
    wait_for(lambda: _drivers(run_id))
    return run, run_id


def _drivers(run_id: str) -> list[int]:
    """Return the JVMs that work for a run, without the guard and the short JVM that start them."""
    others = {*spark_processes(run_id, "guard.py"), *spark_processes(run_id, "launcher.Main")}
    return [pid for pid in spark_processes(run_id, "SparkSubmit") if pid not in others]


def _published_once(faults: FaultHarness, lake: LakeReader, run: str, table: str, attempts: int) -> None:
    ended = faults.wait_for_end(run)
    assert (ended.code, ended.json["outcome"]) == (0, "published"), ended.json
    assert ended.json["attempts"] == attempts
    assert sorted(row["id"] for row in lake.rows(table)) == list(range(1000))
    assert not lake.branches(ended.json["run_id"])
    wait_for(lambda: not spark_processes(ended.json["run_id"]), lambda: "Spark is left", _BEFORE_IT_ENDS)


@pytest.mark.sentinel("the worker killed in a write")
@on_both_catalogs(pytest.mark.matrix)
def test_worker_killed_during_the_write(faults: FaultHarness, lake: LakeReader, tmp_path: Path) -> None:
    """The worker is killed while Spark writes: Spark ends with it, and the next worker writes again."""
    worker = faults.start_worker()
    run, run_id = _start_until_spark_works(
        faults, "writing", pipeline("kill-writer", csv_file(tmp_path / "in.csv", ROWS))
    )
    worker.kill()
    wait_for(lambda: not spark_processes(run_id), lambda: "Spark outlived its worker", _BEFORE_IT_ENDS)
    faults.start_worker()
    _published_once(faults, lake, run, "t.kill_writer", attempts=2)


@pytest.mark.matrix
@on_both_catalogs(pytest.mark.matrix)
def test_worker_stopped_during_the_write(faults: FaultHarness, lake: LakeReader, tmp_path: Path) -> None:
    """A worker that is asked to stop ends its Spark; the next worker makes the next attempt."""
    worker = faults.start_worker()
    run, run_id = _start_until_spark_works(
        faults, "writing", pipeline("stop-writer", csv_file(tmp_path / "in.csv", ROWS))
    )
    worker.stop()
    assert not spark_processes(run_id)
    faults.start_worker()
    _published_once(faults, lake, run, "t.stop_writer", attempts=2)


@on_both_catalogs(pytest.mark.matrix)
def test_spark_killed_during_the_write(faults: FaultHarness, lake: LakeReader, tmp_path: Path) -> None:
    """Spark is killed while it writes: the same worker writes again."""
    faults.start_worker()
    run, run_id = _start_until_spark_works(
        faults, "writing", pipeline("kill-spark", csv_file(tmp_path / "in.csv", ROWS))
    )
    for driver in _drivers(run_id):
        os.kill(driver, signal.SIGKILL)
    _published_once(faults, lake, run, "t.kill_spark", attempts=2)


@pytest.mark.matrix
@on_both_catalogs(pytest.mark.matrix)
def test_worker_killed_during_the_audit(faults: FaultHarness, lake: LakeReader, tmp_path: Path) -> None:
    """The worker is killed during the audit's Spark pass: the next worker asks again."""
    worker = faults.start_worker()
    by_spark = "[sql: SELECT * FROM t.kill_audit WHERE id < 0]"
    run, run_id = _start_until_spark_works(
        faults, "scanning", pipeline("kill-audit", csv_file(tmp_path / "in.csv", ROWS), by_spark)
    )
    worker.kill()
    wait_for(lambda: not spark_processes(run_id), lambda: "Spark outlived its worker", _BEFORE_IT_ENDS)
    faults.start_worker()
    _published_once(faults, lake, run, "t.kill_audit", attempts=1)


def test_nessie_unreachable(faults: FaultHarness, tmp_path: Path) -> None:
    """Nessie is unavailable when a run begins: it gives up, and says so."""
    faults.changeable |= {"NESSIE_URI": "http://127.0.0.1:1/api/v2", "SLUICE_OPEN_TIMEOUT": "3"}
    faults.start_worker()
    source = csv_file(tmp_path / "in.csv", ROWS)
    ended = faults.run(pipeline("no-nessie", source), SLUICE_OPEN_TIMEOUT="3")
    assert (ended.code, ended.json["outcome"], ended.json["branch"]) == (7, "failed", None)
    assert "Nessie at http://127.0.0.1:1/api/v2 does not answer" in ended.json["reason"]
    assert "could not be quarantined or deleted" not in ended.json["reason"]


@pytest.mark.matrix
@pytest.mark.warm
@on_both_catalogs(pytest.mark.matrix)
def test_worker_killed_between_audit_and_merge(faults: FaultHarness, lake: LakeReader, tmp_path: Path) -> None:
    """The worker is killed while people decide: the next worker publishes what they approved."""
    worker = faults.start_worker()
    more = "approval: {timeout: 1h}"
    run = faults.start(pipeline("kill-merge", csv_file(tmp_path / "in.csv", ROWS), "[row_count: 1]", more))
    faults.wait_for_stage(run, "waiting for approval")
    worker.kill()
    faults.start_worker()
    faults.approve(run)
    _published_once(faults, lake, run, "t.kill_merge", attempts=1)


@pytest.mark.matrix
@on_both_catalogs(pytest.mark.matrix)
def test_no_room_for_a_file(faults: FaultHarness, lake: LakeReader, tmp_path: Path) -> None:
    """A file cannot be written to its end, as on a full disk: main is whole, and a later attempt succeeds."""
    rows = [{"id": number, "noise": f"{hash(str(number)):x}"} for number in range(60_000)]
    text = pipeline("no-room", csv_file(tmp_path / "in.csv", rows)).replace("write:", "write:\n  attempts: 20")
    limited = faults.start_worker(prefix=("bash", "-c", 'ulimit -f 300; exec "$@"', "limited"))
    run = faults.start(text)
    faults.wait_for_attempt(run, 2, "writing")
    assert lake.rows("t.no_room") == []
    limited.stop()
    faults.start_worker()
    ended = faults.wait_for_end(run)
    assert ended.json["outcome"] == "published" and ended.json["attempts"] >= 2
    assert len(lake.rows("t.no_room")) == 60_000
    assert not lake.branches(ended.json["run_id"])
