"""Measure many small runs at once, and the memory and history that runs take.

    python -m bench.throughput [--runs 100] [--tables 20] [--more 1000] [--bare 10]

Starts `--runs` runs at once over `--tables` tables on one warm worker. For comparison, runs bare cold `spark-submit`s,
two at a time, and measures Nessie's own rate of branch, commit, merge and delete. More runs follow, a few at a time,
up to `--more` in all, while the worker's memory is read.
"""

import argparse
import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
from temporalio.client import Client

from bench.runs import Plain
from bench.stack import BenchStack, bench_stack, median, save, say, small
from runtime.pipeline.pipeline_input import find_input
from runtime.run.start_run import StartOptions, start_run
from runtime.run.starter import Starter
from runtime.temporal_client import connect
from sluice.contracts.references import BranchRef
from sluice.pipeline.file import parse_pipeline
from sluice.settings import read_settings

_AT_ONCE = 8
_SOME = 5
"""Number of ended runs whose histories are read."""
_CYCLES = 10.0
"""Duration of the measurement of Nessie's rate, in seconds."""


class Runs:
    """Starts runs over the tables one after the other, and waits for them."""

    def __init__(self, at: BenchStack, client: Client, tables: int) -> None:
        self._at, self._client, self._tables = at, client, tables
        self._settings = read_settings(at.environment("warm"))
        self._number = 0
        self.ended: list[str] = []

    async def one(self) -> None:
        """Start a run, and wait for its publication."""
        table = self._number % self._tables
        self._number += 1
        text = small(f"many-{table}", f"m.many_{table}", self._at.rows())
        pipeline = parse_pipeline(text, "bench")
        starter = Starter("bench", self._at.folder)
        options = StartOptions(again=True)
        begun = await start_run(self._client, self._settings, pipeline, find_input(pipeline), starter, options)
        result = await begun.handle.result()
        if result.outcome != "published":
            raise SystemExit(f"a measured run did not end as expected: {result}")
        self.ended.append(begun.handle.id)

    async def many(self, number: int, at_once: int) -> float:
        """Perform `number` runs, `at_once` at a time; return the seconds."""
        room = asyncio.Semaphore(at_once)

        async def one_in_room() -> None:
            async with room:
                await self.one()

        began = time.monotonic()
        await asyncio.gather(*(one_in_room() for _ in range(number)))
        return time.monotonic() - began

    async def history(self) -> tuple[float, float]:
        """Return the events and bytes that the last runs left in Temporal, as medians."""
        events, sizes = [], []
        for name in self.ended[-_SOME:]:
            history = await self._client.get_workflow_handle(name).fetch_history()
            events.append(float(len(history.events)))
            sizes.append(float(sum(event.ByteSize() for event in history.events)))
        return median(events), median(sizes)


def cycles(at: BenchStack, threads: int) -> float:
    """Return the number of times per minute that Nessie creates a branch, commits on it, merges and deletes it."""
    until = time.monotonic() + _CYCLES

    def cycle(number: int) -> int:
        done = 0
        while time.monotonic() < until:
            name, seen = f"wap/cycle/{number}-{done}", at.catalog.head("main")
            at.catalog.create_branch(name, seen)
            head = at.catalog.commit_tables(name, seen, "a commit")
            at.catalog.publish(BranchRef(name=name, base=seen, catalog_id=""), head, "bench", "a cycle", {})
            at.catalog.delete_branch(name)
            done += 1
        return done

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(cycle, range(threads))) / _CYCLES * 60


def bare(at: BenchStack, number: int) -> float:
    """Return the seconds of bare appends, two at a time, after two that warm up the disk."""
    folders = [at.folder / f"bare-{each}" for each in range(2)]
    token = Path(at.variables["NESSIE_PUBLISHER_TOKEN_FILE"]).read_text()
    plains = []
    for folder in folders:
        folder.mkdir()
        plains.append(Plain(at.settings, folder, token))
    steps: list[Callable[[], None]] = [
        lambda each=each: plains[each % 2]("bare", at.rows(), f"m.bare_{each % 2}")  # type: ignore[misc]
        for each in range(number + 2)
    ]
    for step in steps[:2]:
        step()
    began = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda half: [step() for step in steps[2 + half :: 2]], range(2)))
    return time.monotonic() - began


async def measure(at: BenchStack, given: argparse.Namespace) -> dict[str, Any]:
    """Measure throughput, then memory and histories."""
    client = await connect(at.variables)
    at.system("warm")
    worker = psutil.Process(at.workers["warm"].process.pid)
    runs, memory = Runs(at, client, given.tables), {}
    await runs.many(10, 1)
    memory[10] = worker.memory_info().rss
    say("ten runs, one by one")
    await runs.many(given.tables, 2)  # creates every table
    seconds = await runs.many(given.runs, given.runs)
    say(f"{given.runs} runs at once: {seconds:.1f} s")
    legs = []
    for goal in (100, 200, 300, 500, 1000):
        if len(runs.ended) < goal <= given.more:
            number = goal - len(runs.ended)
            legs.append({"runs": number, "seconds": await runs.many(number, _AT_ONCE)})
        if goal <= given.more:
            memory[len(runs.ended)] = worker.memory_info().rss
            say(f"{len(runs.ended)} runs: {memory[len(runs.ended)] / 2**20:.0f} MiB")
    events, size = await runs.history()
    results = {"runs": given.runs, "seconds": seconds, "legs": legs, "memory": memory}
    return {**results, "events": events, "history_bytes": size}


def main() -> None:
    """Measure, print the results, and save the raw data."""
    asked = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("runs", 100), ("tables", 20), ("more", 1000), ("bare", 10)):
        asked.add_argument(f"--{name}", type=int, default=usual)
    given = asked.parse_args()
    with bench_stack() as at:
        results = asyncio.run(measure(at, given))
        results["cycles"] = {threads: cycles(at, threads) for threads in (1, 4)}
        at.workers.pop("warm").stop()
        results["bare"] = {"runs": given.bare, "seconds": bare(at, given.bare)}
    rate = results["runs"] / results["seconds"] * 60
    plain = results["bare"]["runs"] / results["bare"]["seconds"] * 60
    print(f"{rate:.1f} runs a minute; bare spark-submit, two at a time, {plain:.1f}: {rate / plain:.1f} times")
    for leg in results["legs"]:
        print(f"{leg['runs']} runs, {_AT_ONCE} at a time: {leg['runs'] / leg['seconds'] * 60:.1f} a minute")
    print("Nessie alone, cycles a minute, by threads:", {key: round(each) for key, each in results["cycles"].items()})
    first = results["memory"][min(results["memory"])]
    for number, size in results["memory"].items():
        print(f"{number:>5} runs: the worker uses {size / 2**20:.0f} MiB, {size / first:.2f} times the first size")
    print(f"a run leaves {results['events']:.0f} events, {results['history_bytes'] / 1000:.0f} kB")
    save("throughput", results)


if __name__ == "__main__":
    main()
