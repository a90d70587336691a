"""Measure what open pages cost a worker, and how fast the page answers with few runs and with many.

    python -m bench.page [--readers 200] [--runs 40] [--rounds 3] [--many 10000] [--reads 15]

First, `--runs` small warm runs, two at a time, without open pages and with `--readers` of them, alternately. Half of
the pages are home, the others that of a run which waits for approval. All read themselves again as in a browser.
Then the times of pages with few runs and with `--many`, each from a server that has just started. A second passes
between two readings of a page, so that none gets what the one before had read.
"""

import argparse
import asyncio
import getpass
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import requests

from bench.ended_runs import add_ended_runs
from bench.stack import BenchStack, bench_stack, median, save, say, small
from bench.throughput import Runs
from devstack.stack import ROOT
from runtime.temporal_client import connect
from web.session import HEALTH, Session, read_or_make_token

_TABLES = 4
_AT_ONCE = 2
_PAUSE = 1.1
"""Seconds between two readings of a page, more than the age of what all readers share."""


class PageServer:
    """The command `page` on a port of its own."""

    def __init__(self, at: BenchStack) -> None:
        environment = {**os.environ, **at.environment("warm")}
        token = read_or_make_token(Path(environment["SLUICE_HOME"]))
        self.session = Session(token, getpass.getuser(), _free_port())
        command = [sys.executable, str(ROOT / "run_workflow.py"), "page", "--port", str(self.session.port)]
        self._log = (at.folder / "page.log").open("ab")
        self.process = subprocess.Popen(command, cwd=at.folder, env=environment, stderr=self._log, stdout=self._log)
        while not self._answers():
            time.sleep(0.1)

    def seconds(self, path: str) -> float:
        """Return the seconds until a page has answered."""
        began = time.monotonic()
        answer = requests.get(
            self.session.origin + path, headers={"Authorization": f"Bearer {self.session.secret}"}, timeout=60
        )
        took = time.monotonic() - began
        if answer.status_code != 200:
            raise SystemExit(f"{path} answered {answer.status_code}: {answer.text}")
        return took

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()
        self._log.close()

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            raise SystemExit(f"the page ended: {Path(self._log.name).read_text()}")
        try:
            return requests.get(self.session.origin + HEALTH, timeout=10).ok
        except requests.ConnectionError:
            return False


class OpenPages:
    """Pages that people have open, in a process of their own."""

    def __init__(self, session: Session, pages: list[tuple[str, str]]) -> None:
        given = {"origin": session.origin, "cookies": {session.cookie_name: session.cookie}, "pages": pages}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.page_readers"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stdin and self._process.stdout
        self._input, self._output = self._process.stdin, self._process.stdout
        self._input.write(json.dumps(given) + "\n")
        self._input.flush()
        if self._output.readline() != "ready\n":
            raise SystemExit("the readers of pages have failed")

    def close(self) -> list[float]:
        """Close all. Return the seconds of each reading of a page."""
        self._input.close()
        answer = json.loads(self._output.readline())
        self._process.wait()
        if answer["failed"]:
            raise SystemExit(f"open pages have failed: {answer['failed'][:3]}")
        return list(answer["seconds"])


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def processor_time(pid: int) -> float:
    """Return the processor time of one process, user and system."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def start_waiting_run(at: BenchStack) -> str:
    """Start a run that waits for approval. Return the address of its page."""
    system = at.system("warm")
    run = system.start(small("waits", "m.waits", at.rows()) + "approval: {timeout: 10h}\n")
    return f"/runs/{run}/{system.wait_for_stage(run, 'waiting for approval')['run_id']}"


async def load(at: BenchStack, runs: Runs, given: argparse.Namespace, waiting: str) -> list[dict[str, Any]]:
    """Measure runs without open pages and with them, alternately."""
    server, results = PageServer(at), []
    streams = {"/": "/events", waiting: f"/events?workflow_id={waiting.split('/')[2]}"}
    pages = [list(streams.items())[number % 2] for number in range(given.readers)]
    processes = {"worker": at.workers["warm"].process.pid, "page": server.process.pid}
    try:
        for number in range(given.rounds * 2):
            readers = given.readers if number % 2 else 0
            open_pages = OpenPages(server.session, pages) if readers else None
            before = {name: processor_time(pid) for name, pid in processes.items()}
            wall = await runs.many(given.runs, _AT_ONCE)
            used = {name: processor_time(pid) - before[name] for name, pid in processes.items()}
            read = open_pages.close() if open_pages else []
            drawn = {"read": len(read), "each": median(read) if read else None}
            results.append({"readers": readers, "wall": wall, **used, **drawn})
            say(f"{readers} readers: {wall:.1f} s; worker {used['worker']:.2f} s, page {used['page']:.2f} s")
    finally:
        server.stop()
    return results


def answers(at: BenchStack, paths: list[str], reads: int) -> dict[str, list[float]]:
    """Return the seconds of each reading of each page, from a server that has just started."""
    server = PageServer(at)
    seconds: dict[str, list[float]] = {path: [] for path in paths}
    try:
        for _ in range(reads):
            for path, took in seconds.items():
                took.append(server.seconds(path))
            time.sleep(_PAUSE)
    finally:
        server.stop()
    return seconds


async def measure(at: BenchStack, given: argparse.Namespace) -> dict[str, Any]:
    """Measure all cases on one stack."""
    client = await connect(at.variables)
    at.system("warm")
    runs = Runs(at, client, _TABLES)
    await runs.many(10, 1)  # warm-up: a JVM goes on getting faster
    waiting = start_waiting_run(at)
    ended = runs.ended[-1]
    run = f"/runs/{ended}/{(await client.get_workflow_handle(ended).describe()).run_id}"
    paths = ["/", "/runs", run, waiting, "/pipelines", "/tables", "/tables/m.many_0", "/api/runs"]
    few = answers(at, paths, given.reads)
    results: dict[str, Any] = {"load": await load(at, runs, given, waiting)}
    began = time.monotonic()
    await add_ended_runs(client, given.many, "m.many_0")
    say(f"{given.many:,} more runs have ended, in {time.monotonic() - began:.0f} s")
    many = answers(at, paths, given.reads)
    await client.get_workflow_handle(waiting.split("/")[2]).cancel()
    names = {run: "a run", waiting: "a run that waits"}
    return {**results, "pages": {names.get(path, path): {"few": few[path], "many": many[path]} for path in paths}}


def tell(results: dict[str, Any], readers: int) -> None:
    """Print the medians, and their ratios."""
    alone, watched = ([each for each in results["load"] if bool(each["readers"]) is on] for on in (False, True))
    for what in ("wall", "worker", "page"):
        without, among = [each[what] for each in alone], [each[what] for each in watched]
        ratio = f"{median(among) / median(without):5.2f} times" if median(without) else ""
        spread = f"from {min(without):.2f} to {max(without):.2f} s, and from {min(among):.2f} to {max(among):.2f} s"
        print(f"{what:<7} 0 readers {median(without):7.2f} s, {readers} {median(among):7.2f} s, {ratio} ({spread})")
    number, each_took = sum(each["read"] for each in watched), median([each["each"] for each in watched])
    print(f"{number:,} readings of open pages meanwhile: median {each_took * 1000:.0f} ms")
    print(f"{'page':<18} {'few runs: first':>16} {'then':>9} {'worst':>9} {'many: first':>14} {'then':>9} {'worst':>9}")
    for path, seconds in results["pages"].items():
        shown = [[each[0], median(each[1:]), max(each[1:])] for each in (seconds["few"], seconds["many"])]
        few, many = ("".join(f"{took * 1000:7.0f} ms" for took in each) for each in shown)
        print(f"{path:<18} {few:>36} {many:>36} {shown[1][1] / shown[0][1]:5.2f} times")


def main() -> None:
    """Measure, print the results, and save the raw data."""
    asked = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("readers", 200), ("runs", 40), ("rounds", 3), ("many", 10_000), ("reads", 15)):
        asked.add_argument(f"--{name}", type=int, default=usual)
    given = asked.parse_args()
    with bench_stack() as at:
        results = asyncio.run(measure(at, given))
    tell(results, given.readers)
    save("page", results)


if __name__ == "__main__":
    main()
