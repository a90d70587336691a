"""Measure a whole run and its alternatives without Sluice, on each catalog, alternating within each round.

    python -m bench.runs [--rows 1000,1000000,50000000] [--rounds 3] [--ways bare,script,cold,warm] [--name runs]

- bare: a stock `spark-submit` that appends to main, with no branch and no audit;
- script: one stock `spark-submit` that creates a branch, writes, counts nulls by Spark and merges; nothing is durable;
- cold: a run of Sluice with its own Spark application;
- warm: a run of Sluice in a session on the warm server that its worker keeps.

The first two run on Nessie. The others run on a stack with each catalog, one after the other: the last lines print the
ratio of a run on `iceberg`, in an SQLite file, to a run on Nessie. `--name` is the name of the file in
docs/measurements that keeps the results.

All ways load the same CSV files, each into its own table. Seconds are those of the whole command, from its start to its
end; for Sluice also those of the run alone, as its workflow counts them, and the part of these that neither Spark nor
the scans of the audit take. The first round does not count; a large input has no such round.
"""

import argparse
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
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
_CATALOGS = ("nessie", "sql")
_WAYS = ("bare", "script", *ENGINES)
_INNER = ("run", "overhead")
_LARGE = 10_000_000
"""Minimum number of rows of an input that is measured without a warm-up round."""
Measurement = dict[str, Any]


def make_input(folder: Path, rows: int) -> Path:
    """Write rows into CSV files, the same for all ways; return their folder."""
    folder_of_rows = folder / f"rows-{rows}"
    folder_of_rows.mkdir()
    for number in range(_FILES):
        with (folder_of_rows / f"{number}.csv").open("w") as file:
            file.write("id,kind,amount\n")
            file.writelines(f"{i},k{i % 97},{i % 1000}.5\n" for i in range(number, rows, _FILES))
    return folder_of_rows


class Plain:
    """Scripts that people write: a stock spark-submit, Iceberg by `spark.jars`, no class-data archive."""

    def __init__(self, settings: Settings, folder: Path, token: str) -> None:
        self._settings, self._folder, self._token = settings, folder, token
        self._bound = open_catalog(settings).spark_properties(settings.catalog.catalog_name, "main")

    def __call__(self, way: str, source: Path, table: str) -> None:
        """Run a script to its end."""
        job = SparkJob(_SCRIPT, self._folder, "main", catalog=self._bound)
        configuration = {
            **application(self._settings.spark_jobs, self._folder),
            **session(self._settings.spark_jobs, job),
        }
        configuration["spark.driver.memory"] = "4g"
        configuration["spark.jars"] = configuration.pop("spark.driver.extraClassPath").replace(":", ",")
        configuration["spark.sql.catalog.nessie.authentication.token"] = self._token
        file = write_properties(self._folder / "plain.properties", configuration)
        words = submit(file, str(_SCRIPT), way, str(source), table, self._settings.catalog.nessie_uri)
        variables = {**environment(self._settings.spark_jobs, find_java()), "NESSIE_TOKEN": self._token}
        subprocess.run(words, env=variables, check=True, capture_output=True, timeout=1800)


def sluice(at: BenchStack, way: str, source: Path, rows: int) -> Measurement:
    """Run a pipeline to its end; return the seconds of the run alone, and of its orchestration."""
    text = f"name: {way}-{rows}\nwrite: {{source: {{path: '{source}/*.csv', format: csv, schema: 'id bigint, "
    text += f"kind string, amount double'}}}}\ntables: {{b.{way}_{rows}: {{checks: {_CHECKS}}}}}\n"
    report = at.run(way, text)
    return {"run": report["timings"]["total"], "overhead": overhead(report), "timings": report["timings"]}


def measure(
    stacks: Mapping[str, BenchStack], plain: Plain, rows: int, rounds: int, ways: Sequence[str]
) -> list[Measurement]:
    """Time all ways alternately, round after round."""
    source, measurements = make_input(stacks["nessie"].folder, rows), []
    for number in range(1 if rows >= _LARGE else 0, rounds + 1):
        for way in ways:
            for catalog in _CATALOGS if way in ENGINES else _CATALOGS[:1]:
                began = time.monotonic()
                more: Measurement = {}
                if way in ENGINES:
                    more = sluice(stacks[catalog], way, source, rows)
                else:
                    plain(way, source, f"b.{way}_{rows}")
                seconds = time.monotonic() - began
                say(f"{rows} rows, round {number}: {way} on {catalog} {seconds:.2f} s")
                if number:
                    measured = {"rows": rows, "way": way, "catalog": catalog, "round": number, "seconds": seconds}
                    measurements.append({**measured, **more})
    return measurements


def median_of(measurements: Sequence[Measurement], way: str, catalog: str, key: str = "seconds") -> float | None:
    """Return the median of a way on a catalog; None if it was not measured."""
    values = [each[key] for each in measurements if (each["way"], each["catalog"]) == (way, catalog)]
    return median(values) if values else None


def tell(measurements: Sequence[Measurement], rows: int) -> None:
    """Print medians, ratios to the bare way, and ratios between the catalogs."""
    bare = median_of(measurements, "bare", "nessie")
    for way, catalog in dict.fromkeys((each["way"], each["catalog"]) for each in measurements):
        seconds = median_of(measurements, way, catalog) or 0.0
        alone, rest = (median_of(measurements, way, catalog, key) if way in ENGINES else None for key in _INNER)
        inner = f" (the run alone {alone:.2f} s; {rest:.2f} s of it neither Spark nor a scan)" if alone else ""
        of_bare = f"  {seconds / bare:5.2f} of bare" if bare else ""
        print(f"{rows:>10} rows  {way:<7} {catalog:<8} {seconds:8.2f} s{of_bare}{inner}", flush=True)
    for way in ENGINES:
        for key, what in {"seconds": "command", "run": "run alone"}.items():
            first, second = (median_of(measurements, way, catalog, key) for catalog in _CATALOGS)
            if first and second:
                print(f"{rows:>10} rows  a {way} {what} on sql takes {second / first:.2f} times one on nessie")


def main() -> None:
    """Measure, print the results, and save the raw data."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--rows", default="1000,1000000,50000000")
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--ways", default=",".join(_WAYS))
    asked.add_argument("--name", default="runs")
    given = asked.parse_args()
    with ExitStack() as running:
        stacks = {catalog: running.enter_context(bench_stack(catalog)) for catalog in _CATALOGS}
        at = stacks["nessie"]
        token = Path(at.variables["NESSIE_PUBLISHER_TOKEN_FILE"]).read_text()
        plain = Plain(at.settings, at.folder, token)
        everything: list[Measurement] = []
        for rows in map(int, given.rows.split(",")):
            measurements = measure(stacks, plain, rows, given.rounds, given.ways.split(","))
            tell(measurements, rows)
            everything += measurements
    save(given.name, everything)


if __name__ == "__main__":
    main()
