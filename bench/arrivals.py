"""Measure the time from a file's landing to main, the files per minute, and the cost of many known files.

    python -m bench.arrivals [--rounds 10] [--files 1000] [--known 100000]

A separate stack with a warm worker watches the folders; the zones are listed every five minutes, as by default.
Seconds count from a file's landing until main has its rows, without `settle`.
Then the same is measured with many known files, which lie in the landing zone and are recorded on main.
"""

import argparse
import time
from typing import Any

import psutil
from pyiceberg.table import StaticTable

from bench.loaded_files import file as known_file
from bench.loaded_files import manifest
from bench.stack import BenchStack, bench_stack, median, save, say
from lakehouse.input.manifests import InputManifests
from lakehouse.source_files import find_files
from sluice.input.manifest import ManifestFile
from sluice.pipeline.source import Source
from sluice.publishing.branch_properties import input_properties
from sluice.publishing.commit_properties import PIPELINE, RUN_ID, WORKFLOW_ID

_SETTLE = 1.0
_FEW = 10
_WARM_UP = 5
_AT_ONCE = 1000


class Zone:
    """A landing zone and its table on main."""

    def __init__(self, at: BenchStack, name: str, loaded: int = 0) -> None:
        self._at, self.name, self.table = at, name, f"m.{name}"
        self.folder = at.folder / name
        self.folder.mkdir()
        self._number = 0
        if loaded:
            self._add_loaded(loaded)
        (at.folder / f"{name}.d").mkdir()
        (at.folder / f"{name}.d" / f"{name}.yml").write_text(
            f"name: {name}\nwrite: {{source: {{format: csv}}}}\n"
            f"tables: {{{self.table}: {{checks: [not_null: [id], row_count: {{min: 1}}]}}}}\n"
            f"arrival: {{from: {self.folder}, settle: {_SETTLE:g}s}}\n"
        )
        deployed = at.system("warm").command("deploy", str(at.folder / f"{name}.d"), "--set", name, "--yes")
        if deployed.code:
            raise SystemExit(deployed.err)

    def land(self, files: int) -> None:
        """Let files of one row arrive, each complete at once."""
        for _ in range(files):
            self._number += 1
            being_written = self.folder / f".{self._number}"
            being_written.write_text(f"id,kind\n{self._number},{self.name}\n")
            being_written.rename(self.folder / f"{self._number}.csv")

    def seconds(self, files: int = 1) -> float:
        """Let files land; return the seconds until main has their rows."""
        began = time.monotonic()
        self.land(files)
        while self._rows() < self._number:
            time.sleep(0.02)
        return time.monotonic() - began

    def _add_loaded(self, files: int) -> None:
        """Put files into the zone that main records as loaded, as if earlier runs had loaded them."""
        loaded = self.folder / "loaded"
        loaded.mkdir()
        for number in range(files):
            (loaded / f"{number}.csv").write_text(f"id,kind\n{number},loaded by {self.name}\n")
        listed = find_files(Source.model_validate({"path": str(loaded), "format": "csv"}))
        identified = [ManifestFile(**each.model_dump()) for each in listed]
        remember(self._at, self.table, identified)

    def _rows(self) -> int:
        version = self._at.catalog.table_version("main", self.table)
        if version is None:
            return 0
        snapshot = StaticTable.from_metadata(version.metadata_location).current_snapshot()
        return int(snapshot.summary["total-records"] or 0) if snapshot and snapshot.summary else 0


def remember(at: BenchStack, table: str, files: list[ManifestFile]) -> None:
    """Record files as loaded into a table on main, by publications of a thousand files each."""
    manifests = InputManifests(at.settings.storage.lake, {})
    for start in range(0, len(files), _AT_ONCE):
        run = f"{table}-{start}"
        ref = manifests.write(manifest(run, files[start : start + _AT_ONCE], table))
        described = {RUN_ID: run, WORKFLOW_ID: f"w-{run}", PIPELINE: "p", **input_properties(run, [table], ref)}
        at.catalog.commit_tables("main", at.catalog.head("main"), "publish", properties=described)


def latencies(zone: Zone, rounds: int) -> list[float]:
    """Return the seconds for each of `rounds` files that land one after another, without those of `settle`."""
    for _ in range(_WARM_UP):  # creates the table, indexes the files that main records, and warms Spark up
        zone.seconds()
    return [zone.seconds() - _SETTLE for _ in range(rounds)]


def measure(at: BenchStack, rounds: int, files: int, known: int) -> dict[str, Any]:
    """Measure all cases side by side."""
    results: dict[str, Any] = {}
    few = Zone(at, "few", _FEW)
    results["few"] = latencies(few, rounds)
    say(f"a file alone: {median(results['few']):.2f} s beyond settle")
    worker = psutil.Process(at.workers["warm"].process.pid)
    memory = worker.memory_info().rss
    many = Zone(at, "many")
    seconds = many.seconds(files)
    results["burst"] = {"files": files, "seconds": seconds}
    say(f"{files:,} files at once: {seconds:.1f} s, {files / seconds * 60:,.0f} a minute")
    remember(at, "m.other", [ManifestFile(**known_file(number).model_dump()) for number in range(known)])
    remembered = latencies(few, rounds)
    results["remembered"] = remembered
    say(f"main remembers {known:,} more files as loaded: {median(remembered):.2f} s")
    lying = Zone(at, "lying", known)
    lying.seconds()
    say(f"the zone has recognized {known:,} loaded files")
    pairs = [(few.seconds() - _SETTLE, lying.seconds() - _SETTLE) for _ in range(rounds)]  # alternately
    results["alternating"] = {"few": [few for few, _ in pairs], "lying": [lying for _, lying in pairs]}
    results["memory"] = {"few": memory, "known": worker.memory_info().rss}
    return results


def main() -> None:
    """Measure, print the results, and save the raw data."""
    asked = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("rounds", 10), ("files", 1000), ("known", 100_000)):
        asked.add_argument(f"--{name}", type=int, default=usual)
    given = asked.parse_args()
    with bench_stack() as at:
        results = measure(at, given.rounds, given.files, given.known)
    alone, burst, alternating = median(results["few"]), results["burst"], results["alternating"]
    print(f"from landing to main, beyond settle: {alone:.2f} s (maximum {max(results['few']):.2f} s)")
    print(f"{burst['files']:,} small files at once: {burst['files'] / burst['seconds'] * 60:,.0f} a minute")
    print(f"main remembers {given.known:,} more files as loaded: {median(results['remembered']) / alone:.2f} times")
    ratio = median(alternating["lying"]) / median(alternating["few"])
    print(f"{given.known:,} loaded files in the zone, compared with {_FEW}: {ratio:.2f} times")
    memory = results["memory"]
    print(f"the worker's memory: {memory['known'] / memory['few']:.2f} times, {memory['known'] / 2**20:.0f} MiB")
    save("arrivals", results)


if __name__ == "__main__":
    main()
