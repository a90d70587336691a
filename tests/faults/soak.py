"""A soak test: people and files keep runs going while services and workers are killed; then the checker verifies.

    python -m tests.faults.soak --minutes 30 [--seed N]

In a folder for each table, files arrive, are copied and replaced. Runs load them; some wait for approval, are rejected
or cancelled; quarantines are released or repaired. Afterwards each row of a good file is on its table exactly once.
"""

import asyncio
import hashlib
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import requests
import typer
from temporalio.service import RPCError

from devstack.stack import Stack
from lakehouse.open_catalog import open_catalog
from runtime.run.find_run import list_runs, read_result
from runtime.short_workflow import query_lake
from sluice.contracts.lake_queries import ListFilesInput, ListFilesResult
from sluice.errors import SluiceError
from sluice.settings import read_settings
from tests.harness.checker import Checker
from tests.harness.kills import kill_service
from tests.harness.lake_driver import Ending, LakeDriver
from tests.harness.lake_model import Content
from tests.harness.processes import WorkerProcess
from tests.harness.session_guard import SessionGuard
from tests.harness.system import link_tools
from tests.harness.temporal_thread import TEMPORAL

_AT_ONCE = 4
_MOST_RUNS = 10_000
_TABLES = 3
_VICTIMS = ("nessie", "temporal", "worker", "worker")
_COMMANDS = {"run": 10, "approve": 3, "reject": 1, "cancel": 1, "release": 2, "repair": 1}
"""Weight of each command in the random draw."""
_ARRIVALS = {"new": 6, "bad": 1, "mend": 2, "copy": 2, "replace": 1}
_EXPECTED_FAILURES = ("changed since the run was started", "while the run read it")
"""Reasons of failed runs whose files were replaced meanwhile."""

_Answer = TypeVar("_Answer")


class TableSoak:
    """One table, the folder that its runs load, and the content of its files."""

    def __init__(self, number: int, driver: LakeDriver, draw: random.Random) -> None:
        self.driver, self._draw = driver, draw
        self._next_id = number * 10**6
        self._lock = threading.Lock()
        self.files: dict[str, Content] = {}
        self.contents: dict[str, Content] = {}
        """Every content that a file ever had, by its SHA-256."""
        self.change_folder("new")

    def change_folder(self, kind: str) -> None:
        """Write or replace files. Each appears under its name only when it is complete."""
        with self._lock:
            if kind == "mend":
                self.mend_bad_files()
                return
            name = f"{len(self.files)}.csv"
            if kind == "copy":
                content = self._draw.choice(list(self.files.values()))
            else:
                size = self._draw.randint(1, 5)
                content = Content(tuple(range(self._next_id, self._next_id + size)), kind == "bad")
                self._next_id += size
            if kind == "replace":
                name = self._draw.choice(list(self.files))
            self._write(name, content)

    def mend_bad_files(self) -> None:
        """Replace each remaining bad file by a good one."""
        for name, content in list(self.files.items()):
            if content.is_bad:
                self._write(name, Content(tuple(each + 10**9 for each in content.ids)))

    def wanted(self) -> set[str]:
        """Return the ids that must be on the table: those in the present files."""
        return {str(each) for content in self.files.values() for each in content.ids}

    def _write(self, name: str, content: Content) -> None:
        self.files[name] = content
        self.contents[hashlib.sha256(content.csv.encode()).hexdigest()] = content
        arriving = self.driver.folder.parent / f"{self.driver.table}-{name}"
        arriving.write_text(content.csv)
        arriving.replace(self.driver.folder / name)


class Soak:
    """A stack of its own, its runs under way, and a record of commands and kills."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._draw = random.Random(seed)
        home = folder / "home"
        home.mkdir()
        link_tools(home)
        self.stack = Stack(home, os.environ)
        self._environment = {
            **os.environ,
            **self.stack.up(with_worker=False),
            "SLUICE_HOME": str(home),
            "SLUICE_TASK_QUEUE": "soak",
            "SLUICE_HEARTBEAT_TIMEOUT": "4",
            "SLUICE_ACTIVITY_TIMEOUT": "8",
        }
        self._folder = folder
        self._worker = WorkerProcess(self._environment, folder)
        settings = read_settings(self._environment)
        self._settings, self._catalog = settings, open_catalog(settings)
        self.checker = Checker(settings.catalog.nessie_uri, settings.catalog.nessie_writer_token_file, column="id")
        self._head = self.checker.head()
        self.tables = [self._table(number) for number in range(_TABLES)]
        self.kills: Counter[str] = Counter()
        self.endings: list[tuple[str, Ending]] = []
        """The kind and the ending of each command."""

    def run(self, minutes: float) -> list[str]:
        """Keep runs going, kill services, wait until all runs end; return a message for each violated condition."""
        end = time.monotonic() + minutes * 60
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            under_way: list[Future[None]] = []
            next_kill = time.monotonic() + 15
            while time.monotonic() < end:
                under_way = [each for each in under_way if not each.done() or each.result()]
                while len(under_way) < _AT_ONCE:
                    under_way.append(pool.submit(self._command, _drawn(self._draw, _COMMANDS), self._draw.random()))
                self._draw.choice(self.tables).change_folder(_drawn(self._draw, _ARRIVALS))
                if time.monotonic() > next_kill:
                    self._kill(self._draw.choice(_VICTIMS))
                    next_kill = time.monotonic() + self._draw.uniform(15, 45)
                time.sleep(self._draw.uniform(1, 5))
            for each in under_way:
                each.result()
        for table in self.tables:
            table.mend_bad_files()
            self._record("last run", partial(table.driver.run, table.driver.pipeline()))
        return list(self._problems())

    def _table(self, number: int) -> TableSoak:
        files = self._folder / f"files-{number}"
        files.mkdir()
        client = TEMPORAL.run(TEMPORAL.client(self._environment))
        driver = LakeDriver(client, self._settings, self._catalog, {}, f"t.soak_{number}", files)
        return TableSoak(number, driver, random.Random(self._draw.random()))

    def _command(self, kind: str, drawn: float) -> None:
        """Execute one command, and wait for its end."""
        draw = random.Random(drawn)
        driver = draw.choice(self.tables).driver
        if kind in ("release", "repair"):
            quarantines = sorted(_persist(driver.quarantines))
            if not quarantines:
                kind = "run"
            else:
                branch, statement = draw.choice(quarantines), f"UPDATE {driver.table} SET v = 0 WHERE v < 0"
                pipeline = driver.pipeline(strict=kind == "repair", approval="-approved" in branch)
                pipeline = pipeline.model_copy(update={"approval": None})
                repair = [statement] if kind == "repair" else []
                self._record(kind, lambda: driver.release(branch, pipeline, *repair))
                return
        if kind == "run":
            self._record(kind, lambda: driver.run(driver.pipeline()))
            return
        self._record(kind, lambda: _decided(driver, kind, draw.uniform(0, 20)))

    def _record(self, kind: str, command: Callable[[], Coroutine[Any, Any, Ending]]) -> None:
        self.endings.append((kind, _persist(lambda: TEMPORAL.run(command()))))

    def _kill(self, victim: str) -> None:
        self.kills[victim] += 1
        if victim == "worker":
            self._worker.kill()
            self._worker = WorkerProcess(self._environment, self._folder)
            return
        kill_service(self.stack, victim, away=self._draw.uniform(0, 5))
        if self._worker.process.poll() is not None:
            self._worker = WorkerProcess(self._environment, self._folder)

    def _problems(self) -> Iterator[str]:
        """Yield a message for each violated condition."""
        names = [table.driver.table for table in self.tables]
        published = TEMPORAL.run(self._published())
        yield from self.checker.problems(self._head, {run: self._ids(run) for run in published}, names)
        for table in self.tables:
            tags = Counter(self.checker.tags(table.driver.table))
            for missing in sorted(table.wanted() - tags.keys()):
                yield f"{missing} is in a file of {table.driver.folder.name}, and not on {table.driver.table}"
            for branch in table.driver.branches_of_attempts():
                yield f"{branch} is left"

    async def _published(self) -> set[str]:
        """Return the ids of the runs whose results in Temporal say that they were published.

        A command that failed with a service and was repeated knows only the last of its runs.
        """
        client = self.tables[0].driver.client
        results = [await read_result(client, run) for run in await list_runs(client, _MOST_RUNS)]
        return {result.run_id for result in results if result and result.outcome == "published"}

    def _ids(self, run: str) -> list[str]:
        """Return the ids in the files that a run loaded, according to Sluice's list."""
        query = ListFilesInput(run=run, limit=5000)
        listed = TEMPORAL.run(
            query_lake(self.tables[0].driver.client, self._settings.installation, query, ListFilesResult)
        )
        contents = {identity: content for table in self.tables for identity, content in table.contents.items()}
        loaded = [contents[each.identity.split(":")[-1]] for each in listed.files if each.outcome == "published"]
        return [str(each) for content in loaded for each in content.ids]

    def end(self) -> None:
        """Stop the worker and the stack."""
        self._worker.stop()
        self.stack.down()


def _drawn(draw: random.Random, weights: dict[str, int]) -> str:
    return draw.choices(list(weights), list(weights.values()))[0]


async def _decided(driver: LakeDriver, kind: str, delay: float) -> Ending:
    started = await driver.start(driver.pipeline(approval=True))
    if isinstance(started, Ending):
        return started
    await asyncio.sleep(delay)
    if kind == "cancel":
        return await driver.cancel(started)
    return await driver.decide(started, approve=kind == "approve")


def _persist(call: Callable[[], _Answer]) -> _Answer:
    """Repeat a call until services are available."""
    for _ in range(100):
        try:
            return call()
        except (RPCError, SluiceError, requests.RequestException, AssertionError, KeyError, ValueError):
            time.sleep(2)
    return call()


def main(
    minutes: Annotated[float, typer.Option(help="How long.", min=0.5)] = 30,
    seed: Annotated[
        int | None, typer.Option(help="What draws commands and victims; printed, so that it can be repeated.")
    ] = None,
) -> None:
    """Run a soak; exit with 1 if a condition is violated, or if more than one of ten commands failed."""
    seed = random.SystemRandom().randrange(10**9) if seed is None else seed
    print(f"seed {seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="sluice-soak-"))
    soak = Soak(folder, seed)
    try:
        problems = soak.run(minutes)
    finally:
        soak.end()
    outcomes = Counter((kind, ending.outcome) for kind, ending in soak.endings)
    killed = ", ".join(f"{name} {count} times" for name, count in sorted(soak.kills.items()))
    print(f"{len(soak.endings)} commands in {minutes:g} minutes; killed: {killed}")
    for (kind, outcome), count in sorted(outcomes.items()):
        print(f"{kind}: {count} {outcome}")
    failed = [each for _, each in soak.endings if each.outcome == "failed" and not _is_expected(each)]
    for line in [*problems, *(f"failed: {each.why[:300]}" for each in failed)]:
        print(line)
    if problems or failed:
        print(f"logs, lake and histories: {folder}")
    else:
        shutil.rmtree(folder)
    sys.exit(bool(problems) or len(failed) > 0.1 * len(soak.endings))


def _is_expected(ending: Ending) -> bool:
    return any(reason in ending.why for reason in _EXPECTED_FAILURES)


if __name__ == "__main__":
    with closing(SessionGuard()):
        typer.run(main)
