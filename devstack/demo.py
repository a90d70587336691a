"""The demo: three pipelines on real flights, by the commands that a person would use."""

import json
import os
import subprocess
import sys
import time

from rich.console import Console
from rich.rule import Rule
from rich.table import Table

from devstack.errors import StackError
from devstack.stack import ROOT, Stack
from lakehouse.iceberg.table_state import TableState
from lakehouse.open_catalog import open_catalog
from sluice.settings import read_settings

_DOOR = "run_workflow.py"
_TABLES = ("nyc.flights", "nyc.flights_named", "nyc.delays_by_carrier")
_PATIENCE = 300
PUBLISHED, REFUSED, STOPPED = 0, 2, 3

console = Console()


def run_demo(stack: Stack) -> int:
    """Run the demo; return 0 if everything went as it should. What it started, it stops."""
    was_up = {"temporal", "nessie", "worker"} <= {daemon.name for daemon in stack.daemons() if daemon.alive()}
    began = time.monotonic()
    _title("Starting the local stack" if not was_up else "The local stack runs already")
    variables = stack.up()
    console.print(f"Temporal Web UI: {variables['TEMPORAL_UI']}", highlight=False)
    try:
        _Demo(variables).play()
    finally:
        if not was_up:
            _title("Stopping what was started")
            console.print(f"Stopped {', '.join(stack.down())}. The lake and the histories stay, for the next time.")
    console.print(f"\n[bold green]The demo went as it should[/], in {time.monotonic() - began:.0f} s.")
    console.print("Next: `make up`, then `.venv/bin/python run_workflow.py pipelines/nyc_flights.yml --again`.")
    return 0


class _Demo:
    def __init__(self, variables: dict[str, str]) -> None:
        self._environment = {**os.environ, **variables}
        self._catalog = open_catalog(read_settings(self._environment))

    def play(self) -> None:
        """Show the three pipelines, and the tables before and after."""
        _title("The tables on main before")
        self._show_tables()
        _title("1. Clean flights: written on a branch, audited, published")
        self._publish("pipelines/nyc_flights.yml")
        _title("2. Flights with planted faults: quarantined, main unchanged")
        self._quarantine("pipelines/nyc_flights_faulty.yml")
        _title("3. Two tables by a PySpark program: they wait for approval, and get it")
        self._approve("pipelines/nyc_delays.yml", "nyc-delays")
        _title("The tables on main after")
        self._show_tables()
        kept = ", ".join(branch.name for branch in self._catalog.list_branches("quarantine/"))
        console.print(f"Branches beside main: {kept}", highlight=False)

    def _publish(self, pipeline: str) -> None:
        code = self._command(pipeline)
        if code == REFUSED:
            console.print("An earlier demo published this input, so Sluice refuses; --again means it.\n")
            code = self._command(pipeline, "--again")
        _expect(code == PUBLISHED, f"{pipeline} ended with exit code {code}, not {PUBLISHED}")

    def _quarantine(self, pipeline: str) -> None:
        before = self._catalog.head(self._catalog.main)
        code = self._command(pipeline)
        _expect(code == STOPPED, f"{pipeline} ended with exit code {code}, not {STOPPED}")
        after = self._catalog.head(self._catalog.main)
        _expect(after == before, f"main moved from {before} to {after}")
        console.print(f"main is where it was: {after[:16]}", highlight=False)

    def _approve(self, pipeline: str, name: str) -> None:
        if self._command(pipeline, "--detach") == REFUSED:
            console.print("An earlier demo published this, so Sluice refuses; --again means it.\n")
            self._command(pipeline, "--again", "--detach")
        self._wait_for_approval(name)
        self._command("approve", name, "--reason", "the numbers look right")
        code = self._command("watch", name)
        _expect(code == PUBLISHED, f"{pipeline} ended with exit code {code}, not {PUBLISHED}")

    def _wait_for_approval(self, name: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        command = [sys.executable, str(ROOT / _DOOR), "status", name, "--json"]
        with console.status("waiting until the run waits for approval"):
            while time.monotonic() < deadline:
                said = subprocess.run(
                    command, cwd=ROOT, env=self._environment, capture_output=True, text=True, check=False
                )
                if said.returncode == 0 and json.loads(said.stdout).get("stage") == "waiting for approval":
                    return
                time.sleep(1)
        raise StackError(f"{name} did not come to wait for approval within {_PATIENCE} s")

    def _command(self, *arguments: str) -> int:
        """Run a command of the front door, as a person would."""
        console.print(f"[bold cyan]$ python {_DOOR} {' '.join(arguments)}[/]", highlight=False)
        command = [sys.executable, str(ROOT / _DOOR), *arguments]
        return subprocess.run(command, cwd=ROOT, env=self._environment, check=False).returncode

    def _show_tables(self) -> None:
        shown = Table(box=None, header_style="bold")
        for column in ("table", "rows", "data files", "snapshots"):
            shown.add_column(column, justify="left" if column == "table" else "right")
        for name in _TABLES:
            version = self._catalog.table_version(self._catalog.main, name)
            if version is None:
                shown.add_row(name, "not there", "", "")
                continue
            table = TableState.load(version, None, {}).table
            files = [task.file for task in table.scan().plan_files()]
            rows = sum(file.record_count for file in files)
            shown.add_row(name, f"{rows:,}", f"{len(files):,}", f"{len(table.snapshots()):,}")
        console.print(shown)


def _title(text: str) -> None:
    console.print()
    console.print(Rule(f"[bold]{text}[/]", align="left"))


def _expect(true: bool, otherwise: str) -> None:
    if not true:
        raise StackError(f"the demo did not go as it should: {otherwise}")
