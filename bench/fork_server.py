"""Measure the gain by the fork server: small warm runs with forked clients, and with separately started clients.

    python -m bench.fork_server [--rounds 8] [--rows 1000]

Both ways share one Spark Connect server and one process with two workers, each on its own task queue. The ways
alternate, and their order changes from round to round. Seconds are those of the whole command `run_workflow.py run`,
of the run alone as its workflow counts them, and of its write. The first round of each way does not count.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from bench.stack import BenchStack, bench_stack, median, save, say, small
from engine.process.supervise import SupervisedProcess
from engine.spark.configuration import UNREACHABLE_CATALOG
from engine.spark.connect import ConnectEngine
from lakehouse.open_catalog import open_catalog, unreachable_properties
from runtime.installation.identity import with_installation
from runtime.temporal_client import connect, register_search_attributes
from sluice.settings import read_settings
from tests.harness.system import SystemHarness
from worker import make_workers

WAYS = ("forked", "started")
_CLIENT = """\
import os, sys, traceback
from spark_jobs.connect_client import main
status = 0
try:
    with open(sys.argv[1]) as file:
        text = file.read()
    os.unlink(sys.argv[1])
    main(text)
except SystemExit as error:
    status = error.code if isinstance(error.code, int) else int(error.code is not None)
except BaseException:
    traceback.print_exc()
    status = 1
sys.stdout.flush()
sys.stderr.flush()
os._exit(status)
"""
"""Program that imports only what a job needs, and ends without waiting for gRPC's threads, like a forked client."""


class StartedClients:
    """Clients as separate processes under the guard, each started with its job."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._number = folder, 0

    async def ensure_running(self, environment: Mapping[str, str]) -> None:
        """Do nothing: no process is kept."""

    async def start_job(self, specification: str, environment: Mapping[str, str]) -> SupervisedProcess:
        """Start a client with its specification."""
        self._number += 1
        file = self._folder / f"client-{self._number}.json"
        file.touch(mode=0o600)
        file.write_text(specification)
        return await SupervisedProcess.start([sys.executable, "-c", _CLIENT, str(file)], environment)

    async def close(self) -> None:
        """Do nothing: no process is kept."""


async def measure(at: BenchStack, rounds: int, rows: int) -> list[dict[str, Any]]:
    """Run both ways alternately, round after round."""
    results: list[dict[str, Any]] = []
    async with AsyncExitStack() as running:
        harnesses: dict[str, SystemHarness] = {}
        shared: ConnectEngine | None = None
        for way in WAYS:
            variables = {**at.variables, "SLUICE_TASK_QUEUE": way, "SPARK_ENGINE": "connect"}
            settings = with_installation(read_settings(variables))
            client = await connect(variables)
            await register_search_attributes(client)
            engine = ConnectEngine(settings.spark_jobs, unreachable_properties(UNREACHABLE_CATALOG))
            if shared is None:
                shared = engine
                running.push_async_callback(engine.close)
            else:
                engine._server = shared._server
                engine._clients = StartedClients(at.folder)  # type: ignore[assignment]  # has what the engine calls
            for worker in make_workers(client, settings, engine, open_catalog(settings)):
                await running.enter_async_context(worker)
            harnesses[way] = SystemHarness(at.folder, {**os.environ, **variables})
        assert shared
        say("starting the Spark Connect server")
        await shared.warm_up()
        for number in range(rounds + 1):
            for way in WAYS if number % 2 else reversed(WAYS):
                text = small(f"{way}", f"b.{way}", at.rows(rows))
                began = time.monotonic()
                ran = await asyncio.to_thread(harnesses[way].run_command, text, "--again")
                seconds = time.monotonic() - began
                if ran.code != 0:
                    raise SystemExit(f"a measured run did not end as expected: {ran}")
                timings = ran.json["timings"]
                say(
                    f"round {number}: {way} {seconds:.2f} s, run {timings['total']:.2f}, write {timings['writing']:.2f}"
                )
                if number:
                    one = {"way": way, "round": number, "command": seconds, "timings": timings}
                    results.append({**one, "run": timings["total"], "write": timings["writing"]})
    return results


def tell(results: list[dict[str, Any]]) -> None:
    """Print the medians of each way, and the share of the time that forked clients save."""
    for what in ("command", "run", "write"):
        forked, started = ([each[what] for each in results if each["way"] == way] for way in WAYS)
        saved = median([1 - a / b for a, b in zip(forked, started, strict=True)])
        print(
            f"{what:<8} forked {median(forked):6.2f} s  started {median(started):6.2f} s  saved {saved:.0%}", flush=True
        )


def main() -> None:
    """Measure, print the results, and save the raw data."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rounds", type=int, default=8)
    asked.add_argument("--rows", type=int, default=1000)
    given = asked.parse_args()
    with bench_stack() as at:
        results = asyncio.run(measure(at, given.rounds, given.rows))
    tell(results)
    save("fork_server", results)


if __name__ == "__main__":
    main()
