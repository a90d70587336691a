"""The demo, and its numbers against the files that it read."""

import csv
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from devstack.landing import lay_out
from devstack.stack import ROOT
from tests.harness.lake import LakeReader


@pytest.mark.timeout(900)
def test_the_demo_and_its_numbers(stack: dict[str, str], lake: LakeReader) -> None:
    lay_out(ROOT / "data")
    demo = subprocess.run(
        [sys.executable, "-m", "devstack", "demo"],
        cwd=ROOT,
        env={**os.environ, **stack},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "The local stack runs already" in demo.stdout and stack["TEMPORAL_UI"] in demo.stdout

    carriers: Counter[str] = Counter()
    distance = 0
    for file in sorted(Path(ROOT / "data" / "flights").glob("*.csv")):
        with file.open(newline="") as opened:
            for row in csv.DictReader(opened):
                carriers[row["carrier"]] += 1
                distance += int(row["distance"])
    flights = lake.rows("nyc.flights")
    assert Counter(row["carrier"] for row in flights) == carriers
    assert (len(flights), sum(row["distance"] for row in flights)) == (336776, distance)
    assert {row["carrier"]: row["flights"] for row in lake.rows("nyc.delays_by_carrier")} == carriers
    assert len(lake.rows("nyc.flights_named")) == 336776
    (quarantined,) = lake.branches("quarantine/nyc-flights-faulty/")
    assert sum(row["carrier"] is None for row in lake.rows("nyc.flights", quarantined)) == 57
