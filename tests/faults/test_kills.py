"""Processes are killed, for real: afterwards main holds exactly what it should, and nothing is left running."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.support import FrontDoor, Lake, WorkerProcess, csv_file, pipeline, spark_processes, wait_for

ROWS = [{"id": number, "half": number // 2} for number in range(1000)]


class Bench:
    """A front door on a task queue of its own, with workers to kill."""

    def __init__(self, door: FrontDoor, folder: Path, name: str) -> None:
        self.environment = {**door.environment, "SLUICE_TASK_QUEUE": name}
        self.door = FrontDoor(folder, self.environment)
        self.folder = folder
        self.workers: list[WorkerProcess] = []

    def worker(self) -> WorkerProcess:
        """Start a worker."""
        self.workers.append(WorkerProcess(self.environment, self.folder))
        return self.workers[-1]

    def until_spark_works(self, stage: str, text: str) -> tuple[str, str]:
        """Start a run and wait until its Spark works in a stage; return its workflow id and run id."""
        run = self.door.begin(text)
        run_id = str(self.door.wait_for_stage(run, stage)["run_id"])
        wait_for(lambda: _drivers(run_id), 30)
        return run, run_id


@pytest.fixture
def bench(door: FrontDoor, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    bench = Bench(door, tmp_path, request.node.name)
    yield bench
    for worker in bench.workers:
        worker.stop()


def _drivers(run_id: str) -> list[int]:
    """Return the JVMs that work for a run, past the guard that started them."""
    guards = spark_processes(run_id, "guard.py")
    return [pid for pid in spark_processes(run_id, "SparkSubmit") if pid not in guards]


def _published_once(bench: Bench, lake: Lake, run: str, table: str, attempts: int) -> None:
    said = bench.door("watch", run, "--json")
    assert (said.code, said.json["outcome"]) == (0, "published"), said.json
    assert said.json["attempts"] == attempts
    assert sorted(row["id"] for row in lake.rows(table)) == list(range(1000))
    assert not lake.branches(said.json["run_id"])
    wait_for(lambda: not spark_processes(said.json["run_id"]), 20, lambda: "Spark is left")


def test_worker_killed_during_the_write(bench: Bench, lake: Lake, tmp_path: Path) -> None:
    """The worker is killed while Spark writes: Spark ends with it, and the next worker writes again."""
    worker = bench.worker()
    run, run_id = bench.until_spark_works("writing", pipeline("kill-writer", csv_file(tmp_path / "in.csv", ROWS)))
    worker.kill()
    wait_for(lambda: not spark_processes(run_id), 10, lambda: "Spark outlived its worker")
    bench.worker()
    _published_once(bench, lake, run, "t.kill_writer", attempts=2)


@pytest.mark.matrix
def test_worker_stopped_during_the_write(bench: Bench, lake: Lake, tmp_path: Path) -> None:
    """A worker that is asked to stop ends its Spark; the next worker makes the next attempt."""
    worker = bench.worker()
    run, run_id = bench.until_spark_works("writing", pipeline("stop-writer", csv_file(tmp_path / "in.csv", ROWS)))
    worker.stop()
    assert not spark_processes(run_id)
    bench.worker()
    _published_once(bench, lake, run, "t.stop_writer", attempts=2)


def test_spark_killed_during_the_write(bench: Bench, lake: Lake, tmp_path: Path) -> None:
    """Spark is killed while it writes: the same worker writes again."""
    bench.worker()
    run, run_id = bench.until_spark_works("writing", pipeline("kill-spark", csv_file(tmp_path / "in.csv", ROWS)))
    for driver in _drivers(run_id):
        os.kill(driver, signal.SIGKILL)
    _published_once(bench, lake, run, "t.kill_spark", attempts=2)


def test_worker_killed_during_the_audit(bench: Bench, lake: Lake, tmp_path: Path) -> None:
    """The worker is killed during the audit's Spark pass: the next worker asks again."""
    worker = bench.worker()
    by_spark = "[sql: SELECT * FROM t.kill_audit WHERE id < 0]"
    run, run_id = bench.until_spark_works(
        "scanning", pipeline("kill-audit", csv_file(tmp_path / "in.csv", ROWS), by_spark)
    )
    worker.kill()
    wait_for(lambda: not spark_processes(run_id), 10, lambda: "Spark outlived its worker")
    bench.worker()
    _published_once(bench, lake, run, "t.kill_audit", attempts=1)


def test_nessie_unreachable(bench: Bench, tmp_path: Path) -> None:
    """Nessie is away when a run begins: it gives up, and says so."""
    bench.environment |= {"NESSIE_URI": "http://127.0.0.1:1/api/v2", "SLUICE_OPEN_TIMEOUT": "3"}
    bench.worker()
    source = csv_file(tmp_path / "in.csv", ROWS)
    said = bench.door.run(pipeline("no-nessie", source), SLUICE_OPEN_TIMEOUT="3")
    assert (said.code, said.json["outcome"], said.json["branch"]) == (7, "failed", None)
    assert "Nessie at http://127.0.0.1:1/api/v2 does not answer" in said.json["reason"]
    assert "could not be dealt with" not in said.json["reason"]


def test_worker_killed_between_audit_and_merge(bench: Bench, lake: Lake, tmp_path: Path) -> None:
    """The worker is killed while people decide: the next worker publishes what they approved."""
    worker = bench.worker()
    more = "approval: {timeout: 1h}"
    run = bench.door.begin(pipeline("kill-merge", csv_file(tmp_path / "in.csv", ROWS), "[row_count: 1]", more))
    bench.door.wait_for_stage(run, "waiting for approval")
    worker.kill()
    bench.worker()
    assert bench.door("approve", run, "--by", "ana").code == 0
    _published_once(bench, lake, run, "t.kill_merge", attempts=1)


def test_no_room_for_a_file(bench: Bench, lake: Lake, tmp_path: Path) -> None:
    """A file cannot be written to its end, as on a full disk: main is whole, and a later attempt succeeds."""
    rows = [{"id": number, "noise": f"{hash(str(number)):x}"} for number in range(60_000)]
    text = pipeline("no-room", csv_file(tmp_path / "in.csv", rows)).replace("write:", "write:\n  attempts: 20")
    limited = WorkerProcess(bench.environment, tmp_path, prefix=("bash", "-c", 'ulimit -f 300; exec "$@"', "limited"))
    bench.workers.append(limited)
    run = bench.door.begin(text)
    bench.door.wait_for_attempt(run, 2, "writing")
    assert lake.rows("t.no_room") == []
    limited.stop()
    bench.worker()
    said = bench.door("watch", run, "--json")
    assert said.json["outcome"] == "published" and said.json["attempts"] >= 2
    assert len(lake.rows("t.no_room")) == 60_000
    assert not lake.branches(said.json["run_id"])
