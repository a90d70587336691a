"""Helpers of the tests: the front door as a person uses it, an independent reader, workers to kill."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import requests
from pyiceberg.table import StaticTable

from devstack.stack import ROOT
from lakehouse.audit_results_table import BRANCH as LEDGER
from runtime.telemetry import WORKER_READY

DOOR = ROOT / "run_workflow.py"
BYPASS = """\
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.sql("INSERT INTO nessie.t.`{table}@main` VALUES (666)")
spark.sql("INSERT INTO nessie.t.{table} VALUES (2)")
"""
"""A program that changes main behind its run's back; `table` is to be filled in."""


@dataclass(frozen=True)
class Said:
    """What a command of the front door said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output as the one object that it is with --json."""
        found: dict[str, Any] = json.loads(self.out)
        return found


@dataclass(frozen=True)
class FrontDoor:
    """`run_workflow.py`, run in a folder with an environment."""

    folder: Path
    environment: Mapping[str, str]

    def __call__(self, *arguments: str, **more: str) -> Said:
        """Run a command to its end; `more` are further variables of its environment."""
        done = subprocess.run(
            [sys.executable, str(DOOR), *arguments],
            cwd=self.folder,
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def run(self, pipeline: str, *arguments: str, **more: str) -> Said:
        """Write a pipeline file and run it with --json."""
        return self("run", str(self.file(pipeline)), "--json", *arguments, **more)

    def begin(self, pipeline: str, **more: str) -> str:
        """Start a pipeline without following it; return the workflow id."""
        said = self("run", str(self.file(pipeline)), "--json", "--detach", **more)
        assert said.code == 0, said.err
        return str(said.json["workflow_id"])

    def file(self, pipeline: str) -> Path:
        """Write a pipeline into a file of its own."""
        path = self.folder / f"pipeline-{uuid.uuid4().hex[:12]}.yml"  # several threads may start runs at once
        path.write_text(pipeline)
        return path

    def wait_for_attempt(self, run: str, attempt: int, stage: str = "waiting for approval") -> dict[str, Any]:
        """Wait until a run is in a stage of an attempt, or of a later one; return its status."""
        found: dict[str, Any] = {}

        def there() -> bool:
            found.update(self("status", run, "--json").json)
            return bool(found["attempts"] >= attempt) and found["stage"] == stage

        wait_for(there, 120, lambda: f"{run} came to {found}")
        return found

    def wait_for_stage(self, run: str, *stages: str, patience: float = 180) -> dict[str, Any]:
        """Wait until a run is in one of these stages; return its status."""
        found: dict[str, Any] = {}

        def there() -> bool:
            said = self("status", run, "--json")
            found.clear()
            found.update(said.json if said.code == 0 else {})
            return found.get("stage") in stages

        wait_for(there, patience, lambda: f"{run} came to {found}, not to {stages}")
        return found


class Lake:
    """Reads the lake through Nessie's REST API and Iceberg's files alone."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._uri = variables["NESSIE_URI"]
        token = Path(variables["NESSIE_PUBLISHER_TOKEN_FILE"]).read_text()
        self._http = requests.Session()
        self._http.headers["Authorization"] = f"Bearer {token}"

    def rows(self, table: str, ref: str = "main") -> list[dict[str, Any]]:
        """Return all rows of a table on a branch; none where the table is not there."""
        found = self._http.get(f"{self._uri}/trees/{quote(ref, safe='')}/contents/{table}", timeout=30)
        if found.status_code == 404:
            return []
        place = found.json()["content"]["metadataLocation"]
        rows: list[dict[str, Any]] = StaticTable.from_metadata(place).scan().to_arrow().to_pylist()
        return rows

    def head(self, ref: str = "main") -> str:
        """Return the hash that a branch is at."""
        found = self._http.get(f"{self._uri}/trees/{quote(ref, safe='')}", timeout=30).json()
        return str(found["reference"]["hash"])

    def branches(self, containing: str = "") -> list[str]:
        """Return the names of all branches, but main and the ledger's, that contain a text."""
        found = self._http.get(f"{self._uri}/trees", timeout=30).json()["references"]
        names = [ref["name"] for ref in found]
        return [each for each in names if each not in ("main", LEDGER) and containing in each]

    def discard(self, branch: str) -> None:
        """Delete a branch."""
        deleted = self._http.delete(f"{self._uri}/trees/{quote(branch, safe='')}@{self.head(branch)}", timeout=30)
        assert deleted.ok, deleted.text

    def commit(self, at: str) -> dict[str, Any]:
        """Return the properties, authors and parents of a commit."""
        page = self._http.get(f"{self._uri}/trees/@{at}/history?max-records=1", timeout=30).json()
        found: dict[str, Any] = page["logEntries"][0]["commitMeta"]
        return found


class WorkerProcess:
    """A worker of the test's own, to be killed."""

    def __init__(self, environment: Mapping[str, str], folder: Path, prefix: Sequence[str] = ()) -> None:
        self.log = folder / f"worker-{time.monotonic_ns()}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*prefix, sys.executable, str(ROOT / "worker.py")],
                cwd=folder,
                env={**os.environ, **environment},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        wait_for(lambda: WORKER_READY in self.log.read_text(), 60, self.log.read_text)

    def kill(self) -> None:
        """Kill it as the kernel would: no goodbye."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """Ask it to end, and wait."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)


def tools_into(home: Path) -> None:
    """Give a home of a test's own the tools that set-up installed."""
    for tools in ("jars", "bin", "cds"):
        if (ROOT / ".sluice" / tools).exists():
            (home / tools).symlink_to(ROOT / ".sluice" / tools)


def spark_processes(run_id: str, program: str = "") -> list[int]:
    """Return the ids of all processes, the guard included, that work for a run; only those of a program, if named."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            working = process.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            continue
        if run_id in words and program in words and working and process.pid != os.getpid():
            found.append(process.pid)
    return found


def wait_for(true: Callable[[], object], patience: float, otherwise: Callable[[], str] = lambda: "in vain") -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + patience
    while not true():
        assert time.monotonic() < deadline, otherwise()
        time.sleep(0.2)


def csv_file(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows as a CSV file with a header; None is an empty field."""
    names = list(rows[0])
    lines = [",".join(names), *(",".join("" if row[n] is None else str(row[n]) for n in names) for row in rows)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def pipeline(name: str, source: Path | str, checks: str = "[row_count: {min: 1}]", more: str = "") -> str:
    """Return a small pipeline that appends files to the table `t.<name>`."""
    table = f"t.{name.replace('-', '_')}"
    return f"""\
name: {name}
write:
  source: {{path: "{source}"}}
tables:
  {table}:
    checks: {checks}
{more}
"""
