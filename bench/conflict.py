"""Measure the cost of a conflict: a run rebased onto a newer main, and the same run rewritten.

    python -m bench.conflict [--rounds 5] [--rows 1000000]

A program appends `--rows` rows and waits; meanwhile main changes, or does not; then the program ends. Seconds count
from there to the end of the run. The cost of a conflict is the difference from a run without one.
"""

import argparse
import asyncio
import time
from pathlib import Path

from bench.stack import ENGINES, BenchStack, bench_stack, median, save, say
from runtime.temporal_client import connect
from tests.harness.processes import wait_for

_PROGRAM = """\
import time
from pathlib import Path
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.range({rows}).selectExpr("id", "concat('k', id % 97) AS kind").writeTo("c.{table}").append()
written, go = Path("{folder}/written"), Path("{folder}/go")
written.touch()
while not go.exists():
    time.sleep(0.01)
"""
_WAYS = {"no conflict": "auto", "rebased": "rebase", "rewritten": "rewrite"}


def once(at: BenchStack, engine: str, way: str, rows: int, number: int) -> float:
    """Run once; return the seconds from the end of the job to the end of the run."""
    folder = at.folder / f"{engine}-{way.replace(' ', '-')}-{number}"
    folder.mkdir()
    program = folder / "program.py"
    program.write_text(_PROGRAM.format(rows=rows, table=engine, folder=folder))
    text = f"name: conflict-{engine}\nwrite: {{job: {program}, on_conflict: {_WAYS[way]}}}\ntables: [c.{engine}]\n"
    system = at.system(engine)
    run = system.start(text)
    wait_for((folder / "written").exists)
    if way != "no conflict":
        at.append(f"c.{engine}", [{"id": -1, "kind": "outside"}])
    began = time.time()
    (folder / "go").touch()
    ended = system.wait_for_end(run)
    seconds = asyncio.run(closed_at(at, run)) - began
    met = [each["resolved"] for each in ended.json["conflicts"]]
    if ended.json["outcome"] != "published" or met != ([way] if way != "no conflict" else []):
        raise SystemExit(f"a measured run did not end as expected: {ended}")
    return seconds


async def closed_at(at: BenchStack, run: str) -> float:
    """Return the time at which a run ended, by Temporal's clock, which is this machine's."""
    client = await connect(at.variables)
    described = await client.get_workflow_handle(run).describe()
    assert described.close_time
    return described.close_time.timestamp()


def prepare(at: BenchStack, engine: str) -> None:
    """Create the table."""
    program = at.folder / f"make_{engine}.py"
    made = f"spark.range(3).selectExpr('id', \"concat('k', id) AS kind\").writeTo('c.{engine}').create()\n"
    program.write_text(f"from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n{made}")
    at.run(engine, f"name: make-{engine}\nwrite: {{job: {Path(program)}}}\ntables: [c.{engine}]\n")


def main() -> None:
    """Measure, print the results, and save the raw data."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--rows", type=int, default=1_000_000)
    given = asked.parse_args()
    measured: dict[str, dict[str, list[float]]] = {engine: {way: [] for way in _WAYS} for engine in ENGINES}
    with bench_stack() as at:
        for engine in ENGINES:
            prepare(at, engine)
            for number in range(given.rounds + 1):
                for way in _WAYS:
                    seconds = once(at, engine, way, given.rows, number)
                    say(f"{engine}, round {number}: {way} {seconds:.2f} s")
                    if number:
                        measured[engine][way].append(seconds)
    for engine, ways in measured.items():
        plain, over, again = (median(ways[way]) for way in _WAYS)
        ratio = (over - plain) / (again - plain)
        print(f"{engine}: a rebase costs {over - plain:.2f} s, a rewrite {again - plain:.2f} s: {ratio:.2f}")
    save("conflict", measured)


if __name__ == "__main__":
    main()
