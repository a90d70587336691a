"""The place where runs are broken: a task queue, workers, rows with unique tags, and the checker."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from devstack.stack import ROOT
from runtime.telemetry import WORKER_READY
from tests.harness.checker import Checker
from tests.harness.support import FrontDoor, Said, WorkerProcess, csv_file, spark_processes, wait_for

ROWS = 20


class FaultyWorker:
    """A worker that breaks at a point, or lacks a safeguard."""

    def __init__(self, environment: Mapping[str, str], folder: Path, **faults: str) -> None:
        self.log = folder / f"faulty-{time.monotonic_ns()}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.harness.faulty_worker"],
                cwd=ROOT,
                env={**os.environ, **environment, **faults},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        wait_for(lambda: WORKER_READY in self.log.read_text(), 60, self.log.read_text)

    def resume(self) -> None:
        """Let a stopped worker, and all that it started, go on."""
        started = psutil.Process(self.process.pid).children(recursive=True)
        for pid in [*(process.pid for process in started), self.process.pid]:
            os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        """End it, whatever state it is in."""
        if self.process.poll() is None:
            self.resume()
            self.process.terminate()
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Arena:
    """Runs, workers and the checker of one test."""

    def __init__(self, stack: Mapping[str, str], folder: Path, queue: str, **more: str) -> None:
        self.environment = {
            **os.environ,
            **stack,
            "SLUICE_TASK_QUEUE": queue,
            "SLUICE_HEARTBEAT_TIMEOUT": "4",
            "SLUICE_ACTIVITY_TIMEOUT": "8",
            **more,
        }
        self.folder = folder
        self.door = FrontDoor(folder, self.environment)
        self.checker = Checker(stack["NESSIE_URI"], stack["NESSIE_WRITER_TOKEN_FILE"])
        self.since = self.checker.head()
        self.before = set(self.checker.branches())
        self.workers: list[FaultyWorker | WorkerProcess] = []
        self.tags: dict[str, tuple[str, list[str]]] = {}
        """By workflow id, the table and the tags of each run."""

    def worker(self, **changed: str) -> WorkerProcess:
        """Start a sound worker."""
        self.workers.append(WorkerProcess({**self.environment, **changed}, self.folder))
        return self.workers[-1]  # type: ignore[return-value]

    def faulty(self, **faults: str) -> FaultyWorker:
        """Start one that breaks."""
        self.workers.append(FaultyWorker(self.environment, self.folder, **faults))
        return self.workers[-1]  # type: ignore[return-value]

    def begin(
        self, name: str, table: str, checks: str = "not_null: tag", more: str = "", rows: int = ROWS, attempts: int = 3
    ) -> str:
        """Start a run of rows with tags of its own; return its workflow id."""
        tags = [f"{name}-{number}" for number in range(rows)]
        source = csv_file(self.folder / f"{name}.csv", [{"id": i, "tag": tag} for i, tag in enumerate(tags)])
        text = (
            f'name: {name}\nwrite:\n  attempts: {attempts}\n  source: {{path: "{source}"}}\n'
            f"tables:\n  {table}:\n    checks: [{checks}]\n{more}\n"
        )
        run = self.door.begin(text)
        self.tags[run] = (table, tags)
        return run

    def ended(self, run: str) -> dict[str, Any]:
        """Wait for a run's end; return its result."""
        said: Said = self.door("watch", run, "--json")
        return said.json

    def sound(self, results: Sequence[Mapping[str, Any]], kept: Sequence[str] = ()) -> list[str]:
        """Return what does not hold after these runs ended.

        Args:
            kept: the quarantined branches that may be left.
        """
        published = {r["run_id"]: self.tags[r["workflow_id"]][1] for r in results if r["outcome"] == "published"}
        found = self.checker.problems(self.since, published, {table for table, _ in self.tags.values()})
        left = set(self.checker.branches()) - self.before - set(kept)
        found += [f"{branch} is left" for branch in sorted(left)]
        for result in results:
            try:
                wait_for(lambda: not spark_processes(result["run_id"]), 15)  # noqa: B023
            except AssertionError:
                found.append(f"processes of {result['run_id']} are left")
        return found

    def end(self) -> None:
        """End every worker."""
        for worker in self.workers:
            worker.stop()
