"""The demo, and its numbers compared with the files that it read."""

import csv
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from devstack.landing import lay_out
from devstack.stack import ROOT
from tests.harness.command_line import run_command
from tests.harness.lake import LakeReader

LANDING = ROOT / "data" / "landing" / "demo-orders"


Order = tuple[int, str | None]
"""An order: its number and its amount, which may be missing."""


def orders(*files: Path) -> Counter[Order]:
    """Return the number of times that each order occurs in files."""
    counted: Counter[Order] = Counter()
    for file in files:
        with file.open(newline="") as opened:
            rows = [row for row in csv.DictReader(opened) if row["order_id"]]
            counted.update((int(row["order_id"]), row["amount"] or None) for row in rows)
    return counted


def order(row: dict[str, Any]) -> Order:
    """Return the order of a row of the table."""
    return row["order_id"], None if row["amount"] is None else str(row["amount"])


@pytest.mark.timeout(900)
def test_the_demo_and_its_numbers(automatic: dict[str, str], lake: LakeReader) -> None:
    lay_out(ROOT / "data")
    # Leftovers of a demo that was killed while files arrive: its landing zone, and a file there.
    LANDING.mkdir(parents=True, exist_ok=True)
    for file in LANDING.glob("demo-orders-seed*"):  # files of an earlier demo: the landing zone would load them now
        file.unlink()
    (LANDING / "demo-orders-seed1-400.csv").touch()
    neighbor = LANDING.parent / "of-a-user.csv"
    neighbor.touch()
    environment = {**os.environ, **automatic}
    left = run_command(ROOT, environment, "deploy", "pipelines/arrivals", "--set", "sluice-demo", "--yes")
    assert left.code == 0, left.err
    demo = subprocess.run(
        [sys.executable, "-m", "devstack", "demo"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "The local stack runs already" in demo.stdout and automatic["TEMPORAL_UI"] in demo.stdout

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

    assert neighbor.exists()
    good, faulty = orders(*LANDING.glob("*-400.csv")), orders(*LANDING.glob("*-400-*.csv"))
    assert (good.total(), faulty.total(), len(list(LANDING.iterdir()))) == (800, 392, 3)
    assert Counter(order(row) for row in lake.rows("demo.orders")) == good
    (kept_out,) = lake.branches("quarantine/demo-orders/")
    refused = [row for row in lake.rows("demo.orders", kept_out) if order(row) not in good]
    assert (len(refused), sum(row["order_id"] is None for row in refused)) == (400, 8)
    removed = run_command(ROOT, environment, "arrivals", "demo-orders")
    assert removed.code != 0 and "demo-orders" in removed.err, (removed.out, removed.err)
