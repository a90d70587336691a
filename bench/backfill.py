"""Measure a backfill of many small partitions, published one by one or all together, and verify its rows.

    python -m bench.backfill [--partitions 1000] [--concurrency 4]

Uses a separate stack with a warm worker, and one CSV file of ten rows for each partition.
"""

import argparse
import asyncio
import json
import time
from datetime import date, timedelta
from typing import Any

import psutil
from pyiceberg.table import StaticTable

from bench.stack import BenchStack, bench_stack, save, say
from runtime.temporal_client import connect
from tests.harness.command_line import run_command

_ROWS = 10
_LONGEST = 4 * 3600.0
"""Time limit of a backfill, in seconds."""
WARM_UP = """
name: warm-up-{name}
write: {{source: {{path: {file}}}}}
tables: {{m.warm_up: {{checks: [not_null: [id]]}}}}
"""
_FIRST = date(2020, 1, 1)


def prepare(at: BenchStack, name: str, partitions: int) -> tuple[str, str]:
    """Write the files and the pipeline of a backfill; return the pipeline's path and the range of partitions."""
    folder = at.folder / name
    folder.mkdir()
    days = [(_FIRST + timedelta(days=number)).isoformat() for number in range(partitions)]
    for number, day in enumerate(days):
        rows = "".join(f"{number * _ROWS + row},{day}\n" for row in range(_ROWS))
        (folder / f"{day}.csv").write_text(f"id,day\n{rows}")
    pipeline = at.folder / f"{name}.yml"
    pipeline.write_text(
        f'name: {name}\nwrite: {{source: {{path: "{folder}/{{{{ partition }}}}.csv"}}}}\n'
        f"tables: {{m.{name}: {{checks: [not_null: [id], row_count: {{min: 1}}]}}}}\n"
    )
    return str(pipeline), f"{days[0]}..{days[-1]}"


def measure(at: BenchStack, publish: str, partitions: int, concurrency: int) -> dict[str, Any]:
    """Run one backfill to its end, and verify the rows of main."""
    name = f"by_{publish}"
    file, wanted = prepare(at, name, partitions)
    system = at.system("warm")
    at.run("warm", WARM_UP.format(name=name, file=at.rows()))
    worker = psutil.Process(at.workers["warm"].process.pid)
    memory, began = worker.memory_info().rss, time.monotonic()
    options = ("--partitions", wanted, "--publish", publish, "--concurrency", str(concurrency), "--json")
    done = run_command(system.folder, system.environment, "backfill", file, *options, limit=_LONGEST)
    seconds = time.monotonic() - began
    if done.code:
        raise SystemExit(done.out[-2000:] + done.err)
    counts = json.loads(done.out)["counts"]
    version = at.catalog.table_version("main", f"m.{name}")
    assert version, "main has the table"
    ids = StaticTable.from_metadata(version.metadata_location).scan().to_arrow()["id"].to_pylist()
    if sorted(ids) != list(range(partitions * _ROWS)):
        raise SystemExit(f"main has {len(ids):,} rows; expected: {partitions * _ROWS:,} rows, each once")
    say(f"{publish}: {seconds:.0f} s, {partitions / seconds * 60:.0f} partitions a minute, {counts}")
    events, sizes = asyncio.run(histories(at, name))
    return {
        "seconds": seconds,
        "histories": len(events),
        "most_events": max(events),
        "most_bytes": max(sizes),
        "queues": asyncio.run(count_queues(at)),
        "memory": {"before": memory, "after": worker.memory_info().rss},
    }


async def count_queues(at: BenchStack) -> int:
    """Return the number of merge queues that runs started since the start of the stack."""
    client = await connect(at.environment("warm"))
    return (await client.count_workflows('WorkflowType = "MergeQueue"')).count


async def histories(at: BenchStack, pipeline: str) -> tuple[list[int], list[int]]:
    """Return the numbers of events, and the bytes, of the histories of a pipeline's backfill."""
    client = await connect(at.environment("warm"))
    events, sizes = [], []
    async for run in client.list_workflows('WorkflowType = "Backfill"'):
        if run.id.endswith(f"-{pipeline}"):
            described = await client.get_workflow_handle(run.id, run_id=run.run_id).describe()
            events.append(described.history_length)
            sizes.append(described.raw_description.workflow_execution_info.history_size_bytes)
    return events, sizes


def main() -> None:
    """Measure, print the results, and save the raw data."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--partitions", type=int, default=1000)
    asked.add_argument("--concurrency", type=int, default=4)
    given = asked.parse_args()
    with bench_stack() as at:
        results = {each: measure(at, each, given.partitions, given.concurrency) for each in ("each", "together")}
    for publish, result in results.items():
        minute, memory = given.partitions / result["seconds"] * 60, result["memory"]
        print(f"{publish}: {given.partitions:,} partitions in {result['seconds']:.0f} s, {minute:.0f} a minute")
        print(f"  {result['queues']} merge queues started since the start of the measurement")
        print(f"  {result['histories']} workflows of at most {result['most_events']:,} events", end="")
        print(f" and {result['most_bytes'] / 1000:.0f} kB; memory {memory['after'] / memory['before']:.2f} times")
    ratio = results["together"]["seconds"] / results["each"]["seconds"]
    print(f"together takes {ratio:.2f} times as long as each; main has each row once")
    save("backfill", results)


if __name__ == "__main__":
    main()
