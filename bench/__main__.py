"""Run the measurements one after the other, and compare each figure with that of the last kept results.

    python -m bench [--quick] [PART …]

docs/measurements keeps the results. With `--quick`, the measurements have small inputs and few rounds, for a look while
one works; `.sluice/bench/quick` keeps their results, for the next quick look on this machine. Whatever ends this
program, nothing that it started runs on.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.figures import Kept, lines_of
from bench.stack import MEASUREMENTS, RESULTS, say
from devstack.stack import ROOT
from tests.harness.session_guard import SessionGuard

QUICK_RESULTS = ROOT / ".sluice" / "bench" / "quick"
PARTS: Mapping[str, tuple[str, ...]] = {
    "front_door": ("--rounds", "5"),
    "text_values": ("--rows", "100000", "--rounds", "2"),
    "loaded_files": ("--rounds", "5"),
    "diff": ("--rows", "1000000", "--files", "20", "--rounds", "2"),
    "runs": ("--rows", "100000", "--rounds", "2"),
    "conflict": ("--rounds", "2", "--rows", "100000"),
    "throughput": ("--runs", "40", "--more", "60", "--bare", "2"),
    "merge_queue": ("--runs", "8", "--rounds", "1"),
    "backfill": ("--partitions", "40"),
    "arrivals": ("--rounds", "3", "--files", "50", "--known", "1000"),
    "recovery": ("--rounds", "1"),
    "page": ("--readers", "20", "--runs", "10", "--rounds", "1", "--many", "200", "--reads", "5"),
    "growth": (),
}
"""The measurements, with the arguments of a quick look. One without arguments has no quick form."""


def measure(part: str, arguments: Sequence[str], results: Path) -> float:
    """Run one measurement, compare its figures with the kept ones, and return its duration in seconds.

    Raises:
        SystemExit: the measurement failed.
    """
    say(f"--- {part}")
    file, began = results / f"{part}.json", time.monotonic()
    before = Kept.read(file)
    variables = {**os.environ, RESULTS: str(results)}
    command = [sys.executable, "-m", f"bench.{part}", *arguments]
    if code := subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode:
        raise SystemExit(f"bench.{part} failed with exit code {code}")
    if now := Kept.read(file):
        print(*lines_of(now, before), sep="\n", flush=True)
    return time.monotonic() - began


def main() -> None:
    """Run the named measurements, or all, and print how long each took."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--quick", action="store_true", help="small inputs and few rounds")
    asked.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all if none is named")
    arguments = asked.parse_args()
    parts = [part for part, quick in PARTS.items() if quick or not arguments.quick]
    if unknown := set(arguments.parts) - set(parts):
        asked.error(f"there is no {', '.join(sorted(unknown))}: the parts are {', '.join(parts)}")
    parts = arguments.parts or parts
    results = QUICK_RESULTS if arguments.quick else MEASUREMENTS
    guard = SessionGuard()
    try:
        took = {part: measure(part, PARTS[part] if arguments.quick else (), results) for part in parts}
    finally:
        guard.close()
    print(*(f"{part} took {seconds:.0f} s" for part, seconds in took.items()), sep="\n")
    say(f"all took {sum(took.values()) / 60:.1f} min; results in {results.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
