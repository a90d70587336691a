"""Measure a small warm run as its table and its catalog grow.

    python -m bench.growth [--rounds 7]

A table with 1, 100 and 1,000 earlier snapshots; a catalog with 10, 1,000 and 10,000 branches, and as many commits
on main. Seconds are those of the run alone, as its workflow counts them.
"""

import argparse
from typing import Any

from bench.place import Place, keep, median, place, say, small

_SNAPSHOTS = (1, 100, 1_000)
_REFERENCES = (10, 1_000, 10_000)


def timed(at: Place, table: str, rounds: int) -> list[float]:
    """Return the seconds of so many small runs into a table."""
    name = table.replace(".", "-").replace("_", "-")
    return [float(at.run("warm", small(name, table, at.rows()))["timings"]["total"]) for _ in range(rounds)]


def snapshots(at: Place, rounds: int) -> dict[int, list[float]]:
    """Measure runs into tables with few and many snapshots, in turn."""
    found: dict[int, list[float]] = {number: [] for number in _SNAPSHOTS}
    for number in _SNAPSHOTS:
        timed(at, f"g.after_{number}", 1)
        for each in range(number - 1):
            at.append(f"g.after_{number}", [{"id": each, "kind": "x"}])
    for _ in range(rounds):
        for number in _SNAPSHOTS:
            found[number] += timed(at, f"g.after_{number}", 1)
    for number, measured in found.items():
        say(f"{number} snapshots: {median(measured):.3f} s")
    return found


def references(at: Place, rounds: int) -> dict[int, list[float]]:
    """Measure runs in a catalog with more and more branches and commits."""
    found, there = {}, 0
    timed(at, "g.among", 1)
    for number in _REFERENCES:
        for made in range(there, number):
            head = at.catalog.commit_tables("main", at.catalog.head("main"), f"commit {made}")
            at.catalog.create_branch(f"wap/other/{made}", head)
        there = number
        found[number] = timed(at, "g.among", rounds)
        say(f"{number} branches and commits: {median(found[number]):.3f} s")
    return found


def tell(what: str, found: dict[int, list[float]]) -> None:
    """Print medians, and ratios to the smallest."""
    least = median(found[min(found)])
    for number, seconds in found.items():
        print(f"{number:>7} {what:<22} {median(seconds):6.3f} s  {median(seconds) / least:5.2f} times", flush=True)


def main() -> None:
    """Measure, print, and keep the raw data."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rounds", type=int, default=7)
    rounds = asked.parse_args().rounds
    with place(SLUICE_REAP_EVERY="0") as at:
        timed(at, "g.first", 10)  # a JVM goes on getting faster
        found: dict[str, Any] = {"snapshots": snapshots(at, rounds), "references": references(at, rounds)}
    tell("snapshots", found["snapshots"])
    tell("branches and commits", found["references"])
    keep("growth", found)


if __name__ == "__main__":
    main()
