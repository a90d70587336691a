"""The fault harness: breaking workers, runs whose rows have unique tags, and the checker."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from devstack.stack import ROOT
from runtime.telemetry import WORKER_READY
from sluice.settings import read_settings
from tests.harness.checker import Checker
from tests.harness.forked import ForkedProcess
from tests.harness.iceberg_checker import IcebergChecker
from tests.harness.pipelines import csv_file
from tests.harness.processes import WorkerProcess, spark_processes, wait_for
from tests.harness.system import SystemHarness

ROWS = 20


def on_both_catalogs(*marks: pytest.MarkDecorator) -> pytest.MarkDecorator:
    """Return the mark of a test that runs on Nessie and on Iceberg's own catalog, there with further marks."""
    catalogs = [
        pytest.param("nessie", id=pytest.HIDDEN_PARAM),
        pytest.param("rest", id="iceberg", marks=marks),
    ]
    return pytest.mark.parametrize("catalog_kind", catalogs, indirect=True)


def open_checker(variables: Mapping[str, str]) -> Checker:
    """Open the checker of a stack."""
    if variables.get("CATALOG") == "rest":
        return IcebergChecker(variables["ICEBERG_URI"])
    return Checker(variables["NESSIE_URI"], variables["NESSIE_WRITER_TOKEN_FILE"])


class FaultyWorker:
    """A worker that breaks at a point, or lacks a safeguard."""

    def __init__(self, environment: Mapping[str, str], folder: Path, **faults: str) -> None:
        self.log = folder / f"faulty-{time.monotonic_ns()}.log"
        self.log.touch()
        variables = {**os.environ, **environment, **faults}
        self.process = ForkedProcess(_faulty_worker, ROOT, variables, self.log, self.log)
        wait_for(lambda: WORKER_READY in self.log.read_text(), self.log.read_text)

    def resume(self) -> None:
        """Resume a stopped worker and every process that it started."""
        started = psutil.Process(self.process.pid).children(recursive=True)
        for pid in [*(process.pid for process in started), self.process.pid]:
            os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        """End the worker, in whatever state it is."""
        if self.process.poll() is None:
            self.resume()
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def _faulty_worker() -> int:
    from tests.harness.faulty_worker import main  # noqa: PLC0415  # the server of forked processes has imported it

    return main()


class FaultHarness(SystemHarness):
    """A system harness with a task queue of its own, breaking workers, rows with unique tags, and the checker.

    With `warm`, its own workers run no Spark, and the session's warm worker runs the writes: for faults that Spark does
    not notice.
    """

    def __init__(
        self, stack: Mapping[str, str], folder: Path, queue: str, warm: Mapping[str, str] | None = None
    ) -> None:
        role = {"SLUICE_WORKER_ROLE": "control"} if warm else {}
        limits = {"SLUICE_HEARTBEAT_TIMEOUT": "4", "SLUICE_ACTIVITY_TIMEOUT": "8"}
        self.changeable = {**os.environ, **stack, "SLUICE_TASK_QUEUE": queue, **limits, **role}
        """The environment of its workers and runs. A test may change it."""
        super().__init__(
            folder, self.changeable, spark_queue=read_settings(warm).installation.spark_queue if warm else ""
        )
        self.checker = open_checker(stack)
        self.head_before = self.checker.head()
        self.branches_before = set(self.checker.branches())
        self.workers: list[FaultyWorker | WorkerProcess] = []
        self.tags: dict[str, tuple[str, list[str]]] = {}
        """The table and the tags of each run, by workflow id."""
        self.tables: set[str] = set()
        """All tables that runs were to write."""

    def start_worker(self, prefix: Sequence[str] = (), **changed: str) -> WorkerProcess:
        """Start a worker without faults."""
        worker = WorkerProcess({**self.environment, **changed}, self.folder, prefix)
        self.workers.append(worker)
        return worker

    def start_faulty_worker(self, **faults: str) -> FaultyWorker:
        """Start a worker that breaks at a point, or lacks a safeguard."""
        worker = FaultyWorker(self.environment, self.folder, **faults)
        self.workers.append(worker)
        return worker

    def start_tagged(
        self, name: str, table: str, checks: str = "not_null: tag", more: str = "", rows: int = ROWS, attempts: int = 3
    ) -> str:
        """Start a run whose rows have unique tags; return its workflow id."""
        tags = [f"{name}-{number}" for number in range(rows)]
        source = csv_file(self.folder / f"{name}.csv", [{"id": i, "tag": tag} for i, tag in enumerate(tags)])
        text = (
            f'name: {name}\nwrite:\n  attempts: {attempts}\n  source: {{path: "{source}"}}\n'
            f"tables:\n  {table}:\n    checks: [{checks}]\n{more}\n"
        )
        run = self.start(text)
        self.tags[run] = (table, tags)
        self.tables.add(table)
        return run

    def start_tagged_pair(self, name: str, tables: Sequence[str], more: str = "") -> str:
        """Start a run that creates tables and writes rows with unique tags into each; return its workflow id."""
        tags = {table: [f"{name}-{table}-{number}" for number in range(ROWS)] for table in tables}
        statements = [f"CREATE TABLE IF NOT EXISTS {table} (id INT, tag STRING)" for table in tables]
        for table, its in tags.items():
            values = ", ".join(f"({number}, '{tag}')" for number, tag in enumerate(its))
            statements.append(f"INSERT INTO {table} VALUES {values}")
        lines = "".join(f'    - "{each}"\n' for each in statements)
        checked = "".join(f"  {table}: {{checks: [not_null: tag]}}\n" for table in tables)
        run = self.start(f"name: {name}\nwrite:\n  mode: sql\n  statements:\n{lines}tables:\n{checked}{more}\n")
        self.tags[run] = (tables[0], [tag for its in tags.values() for tag in its])
        self.tables |= {*tables}
        return run

    def result(self, run: str) -> dict[str, Any]:
        """Wait for a run's end; return its result."""
        return self.wait_for_end(run).json

    def problems(self, results: Sequence[Mapping[str, Any]], kept: Sequence[str] = ()) -> list[str]:
        """Return a message for each condition that does not hold after these runs.

        Args:
            kept: the quarantined branches that may remain.
        """
        published = {r["run_id"]: self.tags[r["workflow_id"]][1] for r in results if r["outcome"] == "published"}
        problems = self.checker.problems(self.head_before, published, self.tables)
        left = set(self.checker.branches()) - self.branches_before - set(kept)
        problems += [f"{branch} is left" for branch in sorted(left)]
        for result in results:
            try:
                wait_for(lambda: not spark_processes(result["run_id"]), limit=45)  # noqa: B023
            except AssertionError:
                problems.append(f"processes of {result['run_id']} are left")
        return problems

    def close(self) -> None:
        """End every worker."""
        for worker in self.workers:
            worker.stop()
