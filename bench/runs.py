"""Measure a whole run beside what people do without Sluice, each way in turn within each round.

    python -m bench.runs [--rows 1000,1000000,50000000] [--rounds 3]

- bare: a stock `spark-submit` that appends to main, with no branch and no audit;
- script: one stock `spark-submit` that makes a branch, writes, counts nulls by Spark and merges; nothing is durable;
- cold: a run of Sluice with an application of Spark of its own;
- warm: a run of Sluice in a session on the warm server that its worker keeps.

All load the same CSV files into a table of their own. Seconds are those of the whole command, from its start to its
end; for Sluice also those of the run alone, as its workflow counts them, and what of these is neither Spark's nor the
audit's reading. A round that does not count comes first, but for the largest input.
"""

import argparse
import subprocess
import time
from pathlib import Path
from typing import Any

from bench.stack import ENGINES, BenchStack, bench_stack, median, overhead, save, say
from devstack.stack import ROOT
from engine.job import SparkJob
from engine.spark.configuration import application, session, write_properties
from engine.spark.java import find_java
from engine.spark.submit import environment, submit
from lakehouse.open_catalog import open_catalog
from sluice.settings import Settings

_FILES = 4
_SCRIPT = ROOT / "bench" / "plain.py"
_CHECKS = "[not_null: [id, kind], row_count: {min: 1}]"
_LARGE = 10_000_000
"""From so many rows on, no round is spent on warming up."""
Measurement = dict[str, Any]


def make_input(folder: Path, rows: int) -> Path:
    """Write so many rows into CSV files, the same for all ways; return their folder."""
    folder_of_rows = folder / f"rows-{rows}"
    folder_of_rows.mkdir()
    for number in range(_FILES):
        with (folder_of_rows / f"{number}.csv").open("w") as file:
            file.write("id,kind,amount\n")
            file.writelines(f"{i},k{i % 97},{i % 1000}.5\n" for i in range(number, rows, _FILES))
    return folder_of_rows


class Plain:
    """Scripts that people write: a stock spark-submit, Iceberg by `spark.jars`, no archive."""

    def __init__(self, settings: Settings, folder: Path, token: str) -> None:
        self._settings, self._folder, self._token = settings, folder, token
        self._bound = open_catalog(settings).spark_properties(settings.sluice_catalog, "main")

    def __call__(self, way: str, source: Path, table: str) -> None:
        """Run a script to its end."""
        job = SparkJob(_SCRIPT, self._folder, "main", catalog=self._bound)
        configuration = {**application(self._settings, self._folder), **session(self._settings, job)}
        configuration["spark.driver.memory"] = "4g"
        configuration["spark.jars"] = configuration.pop("spark.driver.extraClassPath").replace(":", ",")
        configuration["spark.sql.catalog.nessie.authentication.token"] = self._token
        file = write_properties(self._folder / "plain.properties", configuration)
        words = submit(file, str(_SCRIPT), way, str(source), table, self._settings.nessie_uri)
        variables = {**environment(self._settings, find_java()), "NESSIE_TOKEN": self._token}
        subprocess.run(words, env=variables, check=True, capture_output=True, timeout=1800)


def sluice(at: BenchStack, way: str, source: Path, rows: int) -> Measurement:
    """Run a pipeline to its end; return the seconds of the run alone, and of its orchestration."""
    text = f"name: {way}-{rows}\nwrite: {{source: {{path: '{source}/*.csv', format: csv, schema: 'id bigint, "
    text += f"kind string, amount double'}}}}\ntables: {{b.{way}_{rows}: {{checks: {_CHECKS}}}}}\n"
    report = at.run(way, text)
    return {"run": report["timings"]["total"], "overhead": overhead(report), "timings": report["timings"]}


def measure(at: BenchStack, plain: Plain, rows: int, rounds: int) -> list[Measurement]:
    """Time each way in turn, round after round."""
    source, measurements = make_input(at.folder, rows), []
    for number in range(1 if rows >= _LARGE else 0, rounds + 1):
        for way in ("bare", "script", *ENGINES):
            began = time.monotonic()
            more: Measurement = {}
            if way in ENGINES:
                more = sluice(at, way, source, rows)
            else:
                plain(way, source, f"b.{way}_{rows}")
            seconds = time.monotonic() - began
            say(f"{rows} rows, round {number}: {way} {seconds:.2f} s")
            if number:
                measurements.append({"rows": rows, "way": way, "round": number, "seconds": seconds, **more})
    return measurements


def tell(measurements: list[Measurement], rows: int) -> None:
    """Print medians, and ratios to the bare way."""
    ways: dict[str, list[Measurement]] = {}
    for each in measurements:
        ways.setdefault(each["way"], []).append(each)
    bare = median([each["seconds"] for each in ways["bare"]])
    for way, measured in ways.items():
        seconds = median([each["seconds"] for each in measured])
        inner = ""
        if way in ENGINES:
            alone, rest = (median([each[key] for each in measured]) for key in ("run", "overhead"))
            inner = f" (the run alone {alone:.2f} s; {rest:.2f} s of it neither Spark nor a scan)"
        print(f"{rows:>10} rows  {way:<7} {seconds:8.2f} s  {seconds / bare:5.2f} of bare{inner}", flush=True)


def main() -> None:
    """Measure, print, and keep the raw data."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rows", default="1000,1000000,50000000")
    asked.add_argument("--rounds", type=int, default=3)
    given = asked.parse_args()
    with bench_stack() as at:
        token = Path(at.variables["NESSIE_PUBLISHER_TOKEN_FILE"]).read_text()
        plain = Plain(at.settings, at.folder, token)
        everything: list[Measurement] = []
        for rows in map(int, given.rows.split(",")):
            measurements = measure(at, plain, rows, given.rounds)
            tell(measurements, rows)
            everything += measurements
    save("runs", everything)


if __name__ == "__main__":
    main()
