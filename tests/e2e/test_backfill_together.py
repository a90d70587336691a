"""A backfill whose partitions are published by one merge: months of changing types, a bad month, a killed worker."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.lake import LakeReader
from tests.harness.processes import WorkerProcess, wait_for
from tests.harness.rides import assert_each_once, write_month
from tests.harness.system import SystemHarness

MONTHS = {"2018-12": 11, "2019-01": 12, "2019-02": 13, "2019-03": 14}
"""The months around the first one whose surcharges have a type, with their numbers."""
BAD = "2019-02"
PIPELINE = """
name: together
write:
  source: {{path: "{folder}/rides-{{{{ partition }}}}.parquet"}}
tables:
  t.together:
    checks:
      - not_null: [ride_id]
      - unique: ride_id
      - accepted_range: {{column: ride_id, max: 1000000}}
"""


class Rides:
    """Monthly files of rides, one of them bad, their pipeline, and a worker that can be killed."""

    def __init__(self, system: SystemHarness, folder: Path) -> None:
        self.system, self.folder = system, folder
        for month in MONTHS:
            self.write(month, spoilt=month == BAD)
        text = PIPELINE.format(folder=folder)
        self.file = system.file(text)
        self.to_approve = system.file(text.replace("together", "joint") + "approval: {timeout: 1h}\n")
        self.worker = WorkerProcess(system.environment, folder)

    def write(self, month: str, *, spoilt: bool = False) -> None:
        write_month(self.folder, MONTHS[month], name=f"rides-{month}.parquet", spoilt=spoilt)

    def kill_worker(self) -> None:
        self.worker.kill()
        self.worker = WorkerProcess(self.system.environment, self.folder)

    def backfill(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        done = self.system.command("backfill", *arguments, "--json")
        assert done.out, done.err
        return done.code, json.loads(done.out)

    def collected(self) -> int:
        counts: dict[str, int] = self.backfill("status", "together")[1]["counts"]
        return counts.get("published", 0)


@pytest.fixture
def rides(system: SystemHarness, tmp_path: Path) -> Iterator[Rides]:
    rides = Rides(SystemHarness(tmp_path, {**system.environment, "SLUICE_TASK_QUEUE": "together-tests"}), tmp_path)
    try:
        yield rides
    finally:
        rides.worker.stop()


@pytest.mark.slow
def test_all_months_are_published_by_one_merge_or_none_is(rides: Rides, lake: LakeReader) -> None:
    before = lake.head()
    asked = (str(rides.file), "--partitions", f"{min(MONTHS)}..{max(MONTHS)}", "--publish", "together")
    assert rides.backfill(*asked, "--detach")[0] == 0
    wait_for(lambda: rides.collected() >= 1)
    rides.kill_worker()
    code, paused = rides.backfill(*asked)
    assert (code, paused["counts"]) == (3, {"published": 3, "kept out": 1})
    assert paused["partitions"][BAD]["state"] == "kept out" and "1 of 4 partitions" in paused["paused"]
    assert (lake.rows("t.together"), lake.head()) == ([], before)

    rides.write(BAD)
    assert rides.backfill("retry", "together")[0] == 0
    code, published = rides.backfill("watch", "together")
    assert (code, published["counts"]) == (0, {"published": 4}), published
    assert_each_once(lake.rows("t.together"), MONTHS.values())
    after = lake.head()
    assert lake.commit(after)["parentCommitHashes"][0] == before
    assert lake.branches("backfill/") == []
    kept = lake.branches("quarantine/together/")
    of_bad_month = [any(row["ride_id"] > 10**6 for row in lake.rows("t.together", name)) for name in kept]
    assert kept and all(of_bad_month), "what all months were put together on is deleted"

    code, again = rides.backfill(*asked)
    assert (code, again["counts"], lake.head()) == (0, {"skipped": 4}, after)


@pytest.mark.slow
def test_one_approval_is_asked_for_all_months(rides: Rides, lake: LakeReader) -> None:
    """A backfill that waits for it outlives its worker."""
    before = lake.head()
    asked = (str(rides.to_approve), "--partitions", "2018-12..2019-01", "--publish", "together")
    assert rides.backfill(*asked, "--detach")[0] == 0
    wait_for(lambda: "all partitions: waiting for approval" in rides.system.command("backfill", "status", "joint").out)
    rides.kill_worker()
    assert (lake.rows("t.joint"), lake.head()) == ([], before)
    refused = rides.system.command("backfill", *asked)
    assert refused.code == 2 and "are being published" in refused.err
    (waiting,) = rides.backfill("approve", "joint", "--dry-run")[1]["waiting"]
    assert (waiting["partition"], waiting["tables"], waiting["rows"]) == (
        "all partitions",
        "t.joint",
        "1 table: 100 rows added; new: t.joint",
    )
    seen = ("--hash", waiting["report"], "--reason", "both months were looked at")
    code, decided = rides.backfill("approve", "joint", *seen)
    assert (code, [each["partition"] for each in decided["decided"]]) == (0, ["all partitions"])
    assert rides.backfill("watch", "joint")[0] == 0
    assert_each_once(lake.rows("t.joint"), [11, 12])
    assert lake.branches("backfill/") == lake.branches("quarantine/joint/") == []
