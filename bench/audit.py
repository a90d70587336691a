"""Measure the audit: Sluice's, handwritten SQL on Spark and on DuckDB, and the checking libraries.

    python -m bench.audit [--rows 1000000,10000000,50000000] [--rounds 5] [--out docs/measurements/audit.json]

All ways use one stack, one warm Spark session and the same tables, and alternate within each round; then each runs
from a cold process. Prints medians and ratios, and saves the raw data. `make bench-audit` runs the whole measurement.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import SparkSession
from temporalio.testing import ActivityEnvironment

from activities.audit.audit_branch import AuditBranchActivity
from activities.audit.scan_files import ScanFilesActivity
from activities.audit.scan_tables import TableScanner
from bench import suites, tables
from engine.scan_engines import in_process_engines
from lakehouse.audit.audited_tables import AuditedTables
from lakehouse.audit.report_store import ReportStore
from lakehouse.iceberg.statistics import file_statistics
from lakehouse.iceberg.table_state import TableState, clear_table_caches
from lakehouse.open_catalog import open_catalog
from sluice.checks.registry import expand
from sluice.contracts.audit import AuditInput, AuditResult, ScanInput
from sluice.contracts.references import RunRef
from sluice.pipeline.table import Table
from sluice.settings import Settings, read_settings

SUITES = {
    "provable": suites.PROVABLE,
    "mixed": suites.MIXED,
    "one scan": suites.ONE_SCAN,
    "twenty scans": suites.TWENTY_SCANS,
}


Ways = dict[str, Callable[[], object]]


class Audit:
    """Sluice's audit of one table, by the same activities that a worker runs."""

    def __init__(self, settings: Settings, base: str) -> None:
        self._settings, self._base, self._reports = settings, base, ReportStore(settings.storage.lake, {})
        self._head = open_catalog(settings).head(tables.BRANCH)

    def __call__(self, table: str, suite: str) -> AuditResult:
        """Audit a table; return the plan, which must leave nothing for Spark here."""
        checks = [one for written in SUITES[suite] for one in expand(written)]
        audit_input = AuditInput(
            run_ref=RunRef(run_id="bench", workflow_id="bench", pipeline="bench", label="bench", attempt=1),
            branch=tables.BRANCH,
            base=self._base,
            head=self._head,
            tables={table: Table.model_validate({"checks": checks})},
        )
        worker = ActivityEnvironment()
        clear_table_caches()  # a run audits a hash that nobody read before, and its catalog is new
        audited, engines = AuditedTables(open_catalog(self._settings), {}), in_process_engines(self._settings.scan)
        audit = AuditBranchActivity(audited, self._reports, self._settings.storage, engines)
        plan = worker.run(audit.audit_branch, audit_input)
        decided = list(plan.decided)
        if plan.files:
            scan = ScanFilesActivity(TableScanner(audited, self._reports, self._settings.storage), engines)
            scanned = asyncio.run(worker.run(scan.scan_files, ScanInput(audit=audit_input, undecided=plan.files)))
            decided += scanned.decided
        bad = [check for check in decided if check.verdict != "pass"]
        assert not bad and not plan.undecided and len(decided) == len(checks), (bad, plan.undecided)
        return plan


def paths_of(settings: Settings, table: str) -> list[str]:
    """Return the data files of a table, for handwritten SQL on DuckDB."""
    version = open_catalog(settings).table_version(tables.BRANCH, table)
    assert version
    return [file.path.removeprefix("file:") for file in file_statistics(TableState.load(version, None, {}), [])]


def by_duckdb(paths: list[str], suite: str) -> None:
    """Answer a suite by one fused, handwritten query."""
    with duckdb.connect(":memory:") as connection:
        wanted = ", ".join(suites.by_hand(suite, "duckdb"))
        connection.execute(f"SELECT {wanted} FROM read_parquet({paths!r})").fetchall()


def by_spark(spark: SparkSession, table: str, suite: str, fused: bool) -> None:
    """Answer a suite on Spark by handwritten SQL: one query for all checks, or one query each."""
    wanted = suites.by_hand(suite, "spark")
    for query in [", ".join(wanted)] if fused else wanted:
        spark.sql(f"SELECT {query} FROM {table}").collect()


def measure(ways: Ways, rounds: int, warm_up: int = 1) -> dict[str, list[float]]:
    """Time all ways alternately, in every round; return the seconds of each."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(warm_up + rounds):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            if number >= warm_up:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def warm(settings: Settings, spark: SparkSession, base: str, sizes: list[int], rounds: int) -> dict[str, Any]:
    """Measure every way on every size, with warm sessions."""
    results: dict[str, Any] = {}
    for size in sizes:
        table = tables.build(spark, size)
        audit, paths = Audit(settings, base), paths_of(settings, table)
        for suite in ("provable", "mixed"):
            ways: Ways = {
                "sluice": partial(audit, table, suite),
                "duckdb fused by hand": partial(by_duckdb, paths, suite),
                "spark fused by hand": partial(by_spark, spark, table, suite, fused=True),
                "spark per check": partial(by_spark, spark, table, suite, fused=False),
            }
            results[f"{suite}/{size}"] = measure(ways, rounds)
            show(f"{suite}, {size:,} rows, warm", results[f"{suite}/{size}"])
        scans: Ways = {suite: partial(audit, table, suite) for suite in ("one scan", "twenty scans")}
        results[f"scans/{size}"] = measure(scans, rounds)
        show(f"more scan checks, {size:,} rows", results[f"scans/{size}"], "one scan")
    return results


def cold(base: str, size: int, rounds: int, environment: dict[str, str]) -> dict[str, Any]:
    """Measure ways from a cold process, including its imports."""
    table = f"bench.orders_{size // 1000}k"
    results: dict[str, Any] = {}
    for suite in ("provable", "mixed"):
        names = ("sluice", "duckdb fused by hand", "spark fused by hand")
        ways: Ways = {name: partial(process, name, table, suite, base, environment) for name in names}
        results[f"{suite}/{size}"] = measure(ways, rounds, warm_up=0)
        show(f"{suite}, {size:,} rows, from a cold process", results[f"{suite}/{size}"])
    return results


def libraries(
    python: str, settings: Settings, home: Path, sizes: list[int], rounds: int, results: dict[str, Any]
) -> None:
    """Measure the checking libraries in a separate process, with warm sessions; print them next to Sluice."""
    names = {f"bench.orders_{size // 1000}k": size for size in sizes}
    session, out = home / "session.json", home / "libraries.json"
    session.write_text(json.dumps(tables.configuration(settings, home / "libraries")))
    program = Path(__file__).with_name("libraries.py")
    with (home / "libraries.log").open("wb") as log:
        words = [python, str(program), str(session), str(out), str(rounds), *names]
        subprocess.run(words, check=True, stdout=log, stderr=log)
    for key, seconds in json.loads(out.read_text()).items():
        suite, table, library = key.split("/")
        results[f"{suite}/{names[table]}"][library] = seconds
    for key in [each for each in results if not each.startswith("scans")]:
        show(f"{key} rows, warm, with the checking libraries", results[key])


def process(way: str, table: str, suite: str, base: str, environment: dict[str, str]) -> None:
    """Start a process that performs one way once."""
    words = [sys.executable, "-m", "bench.audit", "--cold", way, table, suite, base]
    quiet = subprocess.DEVNULL
    subprocess.run(words, env={**os.environ, **environment}, check=True, stdout=quiet, stderr=quiet)


def one_cold(settings: Settings, way: str, table: str, suite: str, base: str) -> None:
    """Perform one way once, as the work of a cold process."""
    if way == "sluice":
        Audit(settings, base)(table, suite)
    elif way.startswith("duckdb"):
        by_duckdb(paths_of(settings, table), suite)
    else:
        with tempfile.TemporaryDirectory() as folder:
            by_spark(tables.session(settings, Path(folder)), table, suite, fused=True)


def show(title: str, by_way: dict[str, list[float]], first: str = "sluice") -> None:
    """Print medians, and their ratios to that of the first way."""
    unit = statistics.median(by_way[first])
    print(f"\n{title}")
    for name, seconds in by_way.items():
        median, spread = statistics.median(seconds), f"of {len(seconds)}: {min(seconds):.3f} to {max(seconds):.3f}"
        print(f"  {name:24} {median:9.3f} s   {median / unit:8.2f} x   {spread}", flush=True)


def main() -> None:
    """Measure, print the results, and save the raw data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="1000000,10000000,50000000")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--libraries", metavar="PYTHON", help="an interpreter that has the packages of locks/bench.txt")
    parser.add_argument("--cold", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.cold:
        one_cold(read_settings(os.environ), *given.cold)
        return
    sizes = [int(each) for each in given.rows.split(",")]
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as home:
        stack = tables.stack(Path(home))
        try:
            environment = {**stack.up(), "SLUICE_HOME": home}
            settings = read_settings(environment)
            base = tables.prepare(open_catalog(settings))
            spark = tables.session(settings, Path(home) / "spark")
            results: dict[str, Any] = {"warm": warm(settings, spark, base, sizes, given.rounds), "cold": {}}
            spark.stop()
            if given.libraries:
                libraries(given.libraries, settings, Path(home), sizes, given.rounds, results["warm"])
            for size in sizes[:2]:
                results["cold"].update(cold(base, size, given.rounds, environment))
        finally:
            stack.down()
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps({"cpus": os.cpu_count(), "seconds": results}, indent=1))


if __name__ == "__main__":
    main()
