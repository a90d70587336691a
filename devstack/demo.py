"""The demo: three pipelines on real flights, and files that arrive, with the commands that a person would type."""

import os
import select
import sys
import time
from pathlib import Path
from typing import Any

from rich.table import Table

from devstack.demo_arrivals import ORDERS, FilesThatArrive, move_landing_zone
from devstack.demo_commands import PROGRAM, Commands, console, expect, say, title
from devstack.landing import FAULTY, FLIGHTS
from devstack.object_store import upload
from devstack.stack import ROOT, Stack
from lakehouse.iceberg.file_io import file_io_properties
from lakehouse.iceberg.table_state import TableState
from lakehouse.open_catalog import open_catalog
from sluice.contracts.run import WAITING
from sluice.settings import read_settings

_TABLES = ("nyc.flights", "nyc.flights_named", "nyc.delays_by_carrier", ORDERS)
_APPROVAL_LIMIT = 300.0
"""Maximum time, in seconds, until the third run waits for its approval."""
PUBLISHED, STOPPED = 0, 3
"""Exit codes of the command line that the demo expects."""


def run_demo(stack: Stack) -> int:
    """Run the demo; return 0 if every run ended as expected. Stop the stack afterwards if the demo started it."""
    was_up = stack.services <= {daemon.name for daemon in stack.daemons() if daemon.alive()}
    began = time.monotonic()
    variables = _start(stack, was_up)
    say(f"The page shows every run below, and what it changes: {stack.page}")
    say(f"Temporal's Web UI shows their steps: {variables['TEMPORAL_UI']}")
    try:
        demo = _Demo(variables, stack)
        if stack.s3:
            demo.move_to_store(stack.home / "s3" / "pipelines")
        demo.run()
    finally:
        if not was_up:
            title("Stopping the local stack")
            say(f"Stopped {', '.join(stack.down())}. The tables and the histories of the runs are kept.")
    console.print(f"\n[bold green]The demo ended as expected[/], in {time.monotonic() - began:.0f} s.")
    say("What to do next:")
    start = (f"make up{' S3=1' if stack.s3 else ''}", "start the local stack again, and leave it running")
    for command, reason in (
        *([] if was_up else [start]),
        (f".venv/bin/python {PROGRAM} quarantine list", "see what the audit kept out, and why"),
        (f".venv/bin/python {PROGRAM} {demo.file('nyc_flights')} --again", "load the clean flights once more"),
        ("make down", "stop the local stack"),
    ):
        say(f"  {command:70} {reason}")
    return 0


def _start(stack: Stack, was_up: bool) -> dict[str, str]:
    optional = {"an object store": stack.s3, "Nessie": stack.catalog == "nessie"}
    services = ", ".join(["Temporal", *(name for name, needed in optional.items() if needed)])
    title("The local stack runs already" if was_up else f"Starting the local stack: {services} and a worker")
    return stack.up()


def write_pipelines_of_store(folder: Path, bucket: str) -> None:
    """Write the pipeline files of the demo, with sources and landing zones in a bucket instead of below `data`."""
    for file in (ROOT / "pipelines").rglob("*.yml"):
        text = move_landing_zone(file.read_text(), bucket)
        for name in (FLIGHTS, FAULTY):
            text = text.replace(f"path: data/{name}/", f"path: s3://{bucket}/{name}/")
        written = folder / file.relative_to(ROOT / "pipelines")
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(text)


class _Demo:
    """The four parts of the demo, and the tables before and after them."""

    def __init__(self, variables: dict[str, str], stack: Stack) -> None:
        self._commands = Commands(variables)
        self._environment = self._commands.environment
        settings = read_settings(self._environment)
        self._catalog, self._io = open_catalog(settings), file_io_properties(settings.storage)
        self._stack = stack
        self._folder = Path("pipelines")

    def file(self, name: str) -> str:
        """Return the path of a pipeline file, as a person would type it."""
        return str(self._folder / f"{name}.yml")

    def move_to_store(self, folder: Path) -> None:
        """Upload the flights into the source bucket, and write pipeline files that read them there."""
        bucket = self._environment["SOURCE_BUCKET"]
        files = [file for name in (FLIGHTS, FAULTY) for file in sorted((ROOT / "data" / name).glob("*.csv"))]
        title(f"Uploading {len(files)} files of flights into the bucket {bucket}")
        upload(self._environment, [(file, f"{file.parent.name}/{file.name}") for file in files])
        write_pipelines_of_store(folder, bucket)
        self._folder = Path(os.path.relpath(folder, ROOT))
        say(f"The pipeline files below are those of `pipelines`, with s3://{bucket}/… as the path of the source.")

    def run(self) -> None:
        """Run the four parts, and show the tables on main before and after."""
        title("What readers see before: the tables on the branch main")
        self._show_tables()
        title("1. Clean flights: every check passes, so that the run is published")
        say("The run writes 12 files, one a month, on a branch of its own. The audit checks what was written.")
        say("Then one merge makes all of it visible on main.\n")
        self._publish(self.file("nyc_flights"))
        title("2. Flights with planted faults: a check fails, so that main does not change")
        say("57 flights of December have no carrier, and one has an unknown origin. The audit finds them.")
        say("The branch is quarantined: kept under a name, for a person to inspect, repair or discard.\n")
        self._quarantine(self.file("nyc_flights_faulty"))
        title("3. Two tables from a PySpark program: the run waits for a person's approval")
        say("Both tables are audited together. After the approval, one merge publishes them together.\n")
        self._approve(self.file("nyc_delays"), "nyc-delays")
        title("4. Files that arrive: they are published or kept out, and nobody starts a run")
        say("A landing zone is deployed once. Files that `generate` makes are dropped into it.\n")
        stack = self._stack
        FilesThatArrive(self._commands, self._folder, stack.home, self._orders, s3=stack.s3).run()
        title("What readers see after: the tables on the branch main")
        self._show_tables()
        for branch in self._catalog.list_branches("quarantine/"):
            say(f"Quarantined, and not on main: the branch {branch.name}")

    def _publish(self, pipeline: str) -> None:
        code = self._commands.run(pipeline)
        if self._commands.read("status", Path(pipeline).stem.replace("_", "-")).get("outcome") == "skipped":
            say("\nAn earlier demo published these files, so Sluice skips them. --again loads them once more.\n")
            code = self._commands.run(pipeline, "--again")
        expect(code == PUBLISHED, f"{pipeline} ended with exit code {code}, not {PUBLISHED}")

    def _quarantine(self, pipeline: str) -> None:
        before = self._catalog.head(self._catalog.main)
        code = self._commands.run(pipeline)
        expect(code == STOPPED, f"{pipeline} ended with exit code {code}, not {STOPPED}")
        after = self._catalog.head(self._catalog.main)
        expect(after == before, f"main moved from {before} to {after}")
        say(f"\nmain did not change: its head is still {after[:16]}.")

    def _approve(self, pipeline: str, name: str) -> None:
        self._commands.run(pipeline, "--detach")
        shown = self._wait_for_stage(name, WAITING, "already_published")
        if shown.get("cause") == "already_published":
            say("\nAn earlier demo published this, so Sluice skips it. --again runs it once more.\n")
            self._commands.run(pipeline, "--again", "--detach")
            shown = self._wait_for_stage(name, WAITING)
        report = f"{shown['audited_hash'][:12]}:{shown['audit_digest'][:12]}"
        if not self._decided_on_page(shown):
            self._commands.run("approve", name, "--reason", "the numbers look right", "--hash", report)
        code = self._commands.run("watch", name)
        expect(code == PUBLISHED, f"{pipeline} ended with exit code {code}, not {PUBLISHED}")

    def _decided_on_page(self, shown: dict[str, Any]) -> bool:
        """Wait on a terminal for an approval on the page, or for Enter; return True if the run was decided."""
        page = self._commands.environment.get("SLUICE_PAGE", "")
        say(f"\nThe run waits. Its page shows what it changes: {page}/runs/{shown['workflow_id']}/{shown['run_id']}")
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            return False
        say("Approve it there, and the demo goes on. Or press Enter, and the command below approves it.")
        while not select.select([sys.stdin], [], [], 1.0)[0]:
            if self._commands.read("status", shown["run_id"]).get("stage", WAITING) != WAITING:
                return True
        sys.stdin.readline()
        return False

    def _wait_for_stage(self, name: str, *awaited: str) -> dict[str, Any]:
        """Wait until a run is in one of the awaited stages, or has ended with an awaited cause; return its status."""
        with console.status("The run writes and audits, then it waits for approval"):
            return self._commands.wait_for(
                lambda shown: bool({shown.get("stage"), shown.get("cause")} & {*awaited}),
                _APPROVAL_LIMIT,
                "status",
                name,
            )

    def _orders(self) -> list[int]:
        """Return the numbers of all orders on main, read with PyIceberg."""
        version = self._catalog.table_version(self._catalog.main, ORDERS)
        if version is None:
            return []
        read = TableState.load(version, None, self._io).table.scan(selected_fields=("order_id",)).to_arrow()
        numbers: list[int] = read["order_id"].to_pylist()
        return numbers

    def _show_tables(self) -> None:
        shown = Table(box=None, header_style="bold")
        for column in ("table", "rows", "data files", "snapshots"):
            shown.add_column(column, justify="left" if column == "table" else "right")
        for name in _TABLES:
            version = self._catalog.table_version(self._catalog.main, name)
            if version is None:
                shown.add_row(name, "does not exist", "", "")
                continue
            table = TableState.load(version, None, self._io).table
            files = [task.file for task in table.scan().plan_files()]
            rows = sum(file.record_count for file in files)
            shown.add_row(name, f"{rows:,}", f"{len(files):,}", f"{len(table.snapshots()):,}")
        console.print(shown)
