"""A stack for measurements of whole runs: its own services, a cold and a warm worker, and methods to start runs."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.table import StaticTable, Table

from devstack.set_up.spark_archive import SparkArchive
from devstack.stack import ROOT, Stack
from lakehouse.catalog import BranchCatalog
from lakehouse.iceberg.commit import BranchCommitCatalog, table_commit
from lakehouse.open_catalog import open_catalog
from sluice.settings import Settings, read_settings
from tests.harness.processes import WorkerProcess
from tests.harness.system import SystemHarness, link_tools

MEASUREMENTS = ROOT / "docs" / "measurements"
RESULTS = "BENCH_RESULTS"
"""The variable with the folder that gets the results instead of docs/measurements."""
ENGINES = {"cold": "submit", "warm": "connect"}


class BenchStack:
    """A stack with one catalog, and a worker for each engine on a queue of its name."""

    def __init__(self, folder: Path, catalog: str = "nessie", **more: str) -> None:
        self.folder, self._more = folder, more
        home = folder / "home"
        home.mkdir()
        SparkArchive(ROOT, ROOT / ".sluice").wait()
        link_tools(home)
        self.workers: dict[str, WorkerProcess] = {}
        self._number = 0
        self._stack = Stack(home, {**os.environ, "CATALOG": catalog})
        try:
            self.variables = {**self._stack.up(with_worker=False), "SLUICE_HOME": str(home), "CATALOG": catalog}
            self.settings: Settings = read_settings(self.variables)
            self.catalog: BranchCatalog = open_catalog(self.settings)
        except BaseException:
            self._stack.down()
            raise

    def environment(self, way: str) -> dict[str, str]:
        """Return the variables of a way's worker, and of the commands that start runs on it."""
        return {**self.variables, "SLUICE_TASK_QUEUE": way, "SPARK_ENGINE": ENGINES[way], **self._more}

    def system(self, way: str) -> SystemHarness:
        """Return the command line for a way's worker. Start the worker if there is none."""
        if way not in self.workers:
            self.workers[way] = WorkerProcess(self.environment(way), self.folder)
        return SystemHarness(self.folder, {**os.environ, **self.environment(way)})

    def run(self, way: str, text: str) -> dict[str, Any]:
        """Run a pipeline until it is published; return its report."""
        output = self.system(way).run_command(text, "--again")
        if output.code != 0:
            raise SystemExit(f"a measured run did not end as expected: {output}")
        return output.json

    def rows(self, number: int = 5) -> Path:
        """Return a small CSV file with unique content."""
        self._number += 1
        file = self.folder / f"small-{self._number}.csv"
        file.write_text("id,kind\n" + "".join(f"{self._number * 1000 + i},k{i % 7}\n" for i in range(number)))
        return file

    def append(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        """Append rows to a table on main from outside Sluice, by PyIceberg."""
        version = self.catalog.table_version("main", table)
        assert version
        static = StaticTable.from_metadata(version.metadata_location)

        def commit(location: str, metadata: Any) -> None:
            tables = [table_commit(table, location, metadata)]
            self.catalog.commit_tables("main", self.catalog.head("main"), "outside", tables)

        outside = Table(
            ("o", *table.split(".")), static.metadata, version.metadata_location, static.io, BranchCommitCatalog(commit)
        )
        outside.append(pa.Table.from_pylist(list(rows), schema=outside.schema().as_arrow()))

    def close(self) -> None:
        """Stop all workers and services."""
        for worker in self.workers.values():
            worker.stop()
        self._stack.down()


@contextmanager
def bench_stack(catalog: str = "nessie", **more: str) -> Iterator[BenchStack]:
    """Start a stack for measurements, and stop it in the end."""
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        stack = BenchStack(Path(folder), catalog, **more)
        try:
            yield stack
        finally:
            stack.close()


def small(name: str, table: str, source: Path) -> str:
    """Return a pipeline that appends a small file to a table, with three checks."""
    checks = "[not_null: [id, kind], row_count: {min: 1}]"
    return f"name: {name}\nwrite: {{source: {{path: '{source}'}}}}\ntables: {{{table}: {{checks: {checks}}}}}\n"


def overhead(report: dict[str, Any]) -> float:
    """Return the seconds of a run without those of Spark and scans: the cost of its orchestration."""
    timings = report["timings"]
    return float(timings["total"] - timings.get("writing", 0) - timings.get("scanning", 0))


def median(values: Sequence[float]) -> float:
    """Return the median of values."""
    return statistics.median(values)


def say(text: str) -> None:
    """Print a text at once, with the time, since a measurement takes long."""
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


def save(name: str, results: Any) -> None:
    """Save results, with a description of the machine."""
    machine = {"cpus": os.cpu_count(), "python": sys.version.split()[0], "date": time.strftime("%Y-%m-%d")}
    machine["commit"] = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    folder = Path(os.environ.get(RESULTS) or MEASUREMENTS)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({"machine": machine, "results": results}, indent=1) + "\n")
