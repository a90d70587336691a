"""Measure a small warm run as its table and its catalog grow.

    python -m bench.growth [--rounds 7]

A table with 1, 100 and 1,000 earlier snapshots; a catalog with 10, 1,000 and 10,000 branches, and as many commits
on main. Seconds are those of the run alone, as its workflow counts them.
"""

import argparse
from typing import Any

from bench.stack import BenchStack, bench_stack, median, save, say, small

_SNAPSHOTS = (1, 100, 1_000)
_REFERENCES = (10, 1_000, 10_000)


def timed(at: BenchStack, table: str, rounds: int) -> list[float]:
    """Return the seconds of each of `rounds` small runs into a table."""
    name = table.replace(".", "-").replace("_", "-")
    return [float(at.run("warm", small(name, table, at.rows()))["timings"]["total"]) for _ in range(rounds)]


def snapshots(at: BenchStack, rounds: int) -> dict[int, list[float]]:
    """Measure runs into tables with few and many snapshots, alternately."""
    seconds: dict[int, list[float]] = {number: [] for number in _SNAPSHOTS}
    for number in _SNAPSHOTS:
        timed(at, f"g.after_{number}", 1)
        for each in range(number - 1):
            at.append(f"g.after_{number}", [{"id": each, "kind": "x"}])
    for _ in range(rounds):
        for number in _SNAPSHOTS:
            seconds[number] += timed(at, f"g.after_{number}", 1)
    for number, measured in seconds.items():
        say(f"{number} snapshots: {median(measured):.3f} s")
    return seconds


def references(at: BenchStack, rounds: int) -> dict[int, list[float]]:
    """Measure runs in a catalog with a growing number of branches and commits."""
    seconds, there = {}, 0
    timed(at, "g.among", 1)
    for number in _REFERENCES:
        for made in range(there, number):
            head = at.catalog.commit_tables("main", at.catalog.head("main"), f"commit {made}")
            at.catalog.create_branch(f"wap/other/{made}", head)
        there = number
        seconds[number] = timed(at, "g.among", rounds)
        say(f"{number} branches and commits: {median(seconds[number]):.3f} s")
    return seconds


def tell(what: str, by_size: dict[int, list[float]]) -> None:
    """Print medians, and their ratios to that of the smallest size."""
    least = median(by_size[min(by_size)])
    for number, seconds in by_size.items():
        print(f"{number:>7} {what:<22} {median(seconds):6.3f} s  {median(seconds) / least:5.2f} times", flush=True)


def main() -> None:
    """Measure, print the results, and save the raw data."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rounds", type=int, default=7)
    rounds = asked.parse_args().rounds
    with bench_stack(SLUICE_REAP_EVERY="0") as at:
        timed(at, "g.first", 10)  # warm-up: a JVM goes on getting faster
        results: dict[str, Any] = {"snapshots": snapshots(at, rounds), "references": references(at, rounds)}
    tell("snapshots", results["snapshots"])
    tell("branches and commits", results["references"])
    save("growth", results)


if __name__ == "__main__":
    main()
