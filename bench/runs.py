"""Measure a whole run beside what people do without Sluice, each way in turn within each round.

    python -m bench.runs [--rows 1000,1000000] [--rounds 3] [--out docs/measurements/runs.json]

- bare: a stock `spark-submit` that appends to main, with no branch and no audit;
- script: one stock `spark-submit` that makes a branch, writes, counts nulls by Spark and merges; nothing is durable;
- cold: a run of Sluice with an application of Spark of its own;
- warm: a run of Sluice in a session on the warm server that its worker keeps.

All load the same CSV files into a table of their own. Seconds are those of the whole command, from its start to its
end; for Sluice also those of the run alone, as its workflow counts them.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from devstack.stack import ROOT, Stack
from engine.configuration import application, session, written
from engine.java import find_java
from engine.job import SparkJob
from engine.submit import environment, submit
from sluice.settings import Settings, read_settings
from tests.support import FrontDoor, WorkerProcess, tools_into

_FILES = 4
_SCRIPT = ROOT / "bench" / "plain.py"
_CHECKS = "[not_null: [id, kind], row_count: {min: 1}]"


def make_input(folder: Path, rows: int) -> Path:
    """Write so many rows into CSV files, the same for all ways; return their folder."""
    place = folder / f"rows-{rows}"
    place.mkdir()
    for number in range(_FILES):
        with (place / f"{number}.csv").open("w") as file:
            file.write("id,kind,amount\n")
            file.writelines(f"{i},k{i % 97},{i % 1000}.5\n" for i in range(number, rows, _FILES))
    return place


class Plain:
    """Scripts that people write: a stock spark-submit, Iceberg by `spark.jars`, no archive."""

    def __init__(self, settings: Settings, folder: Path, token: str) -> None:
        self._settings, self._folder, self._token = settings, folder, token

    def __call__(self, way: str, source: Path, table: str) -> None:
        """Run a script to its end."""
        job = SparkJob(_SCRIPT, self._folder, "main", ours=True)
        found = {**application(self._settings, self._folder), **session(self._settings, job)}
        found["spark.jars"] = found.pop("spark.driver.extraClassPath")
        found["spark.sql.catalog.nessie.authentication.token"] = self._token
        file = written(self._folder / "plain.properties", found)
        words = submit(file, str(_SCRIPT), way, str(source), table, self._settings.nessie_uri)
        variables = {**environment(self._settings, find_java()), "NESSIE_TOKEN": self._token}
        subprocess.run(words, env=variables, check=True, capture_output=True, timeout=1800)


def sluice(front: FrontDoor, source: Path, table: str) -> float:
    """Run a pipeline to its end; return the seconds of the run alone."""
    name = table.replace(".", "-").replace("_", "-")
    text = f"name: {name}\nwrite: {{source: {{path: '{source}/*.csv', format: csv, schema: 'id bigint, kind string, "
    text += f"amount double'}}}}\ntables: {{{table}: {{checks: {_CHECKS}}}}}\n"
    said = front.run(text, "--again")
    assert said.code == 0, said
    return float(said.json["timings"]["total"])


def measure(ways: Mapping[str, Callable[[], float | None]], rounds: int) -> list[dict[str, Any]]:
    """Time each way in turn, round after round, the first of which does not count."""
    found = []
    for number in range(rounds + 1):
        for way, act in ways.items():
            began = time.monotonic()
            alone = act()
            seconds = time.monotonic() - began
            print(f"  round {number}: {way} {seconds:.2f} s", flush=True)
            if number:
                found.append({"way": way, "round": number, "seconds": seconds, "run": alone})
    return found


def print_table(raw: list[dict[str, Any]], rows: int) -> None:
    """Print medians, and ratios to the bare way."""
    medians = {way: statistics.median(r["seconds"] for r in raw if r["way"] == way) for way in _ways(raw)}
    for way, seconds in medians.items():
        alone = [r["run"] for r in raw if r["way"] == way and r["run"] is not None]
        inner = f" (the run alone {statistics.median(alone):.2f} s)" if alone else ""
        print(f"{rows:>10} rows  {way:<7} {seconds:8.2f} s  {seconds / medians['bare']:5.2f} of bare{inner}")


def _ways(raw: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(each["way"]) for each in raw))


def main() -> None:
    """Measure, print, and keep the raw data."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rows", default="1000,1000000")
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--out", type=Path)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as place:
        folder = Path(place)
        home = folder / "home"
        home.mkdir()
        tools_into(home)
        stack = Stack(home, os.environ)
        variables = {**stack.up(with_worker=False), "SLUICE_HOME": str(home)}
        workers = []
        try:
            fronts = {}
            for way, engine in (("cold", "submit"), ("warm", "connect")):
                settings = {**variables, "SLUICE_TASK_QUEUE": way, "SPARK_ENGINE": engine}
                workers.append(WorkerProcess(settings, folder))
                fronts[way] = FrontDoor(folder, {**os.environ, **settings})
            token = Path(variables["NESSIE_PUBLISHER_TOKEN_FILE"]).read_text()
            plain = Plain(read_settings(variables), folder, token)
            everything = []
            for rows in map(int, given.rows.split(",")):
                source = make_input(folder, rows)
                ways: dict[str, Callable[[], float | None]] = {
                    "bare": lambda source=source, rows=rows: plain("bare", source, f"b.bare_{rows}"),  # type: ignore[misc]
                    "script": lambda source=source, rows=rows: plain("script", source, f"b.script_{rows}"),  # type: ignore[misc]
                    "cold": lambda source=source, rows=rows: sluice(fronts["cold"], source, f"b.cold_{rows}"),  # type: ignore[misc]
                    "warm": lambda source=source, rows=rows: sluice(fronts["warm"], source, f"b.warm_{rows}"),  # type: ignore[misc]
                }
                raw = measure(ways, given.rounds)
                print_table(raw, rows)
                everything += [{"rows": rows, **each} for each in raw]
            if given.out:
                given.out.write_text(json.dumps(everything, indent=1) + "\n")
        finally:
            for worker in workers:
                worker.stop()
            stack.down()


if __name__ == "__main__":
    main()
