"""A backfill on the real stack: a month that fails its check, a killed worker, a second start, and a repair."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.processes import WorkerProcess, wait_for
from tests.harness.system import SystemHarness

MONTHS = [f"2018-{month:02}" for month in range(1, 7)]
BAD = "2018-03"


@pytest.fixture
def months(system: SystemHarness, backfill_queue: dict[str, str], tmp_path: Path) -> Iterator["Months"]:
    months = Months(SystemHarness(tmp_path, {**system.environment, **backfill_queue}), tmp_path)
    try:
        yield months
    finally:
        months.worker.stop()


class Months:
    """Six files of a month each, their pipeline, and a worker that can be killed."""

    def __init__(self, system: SystemHarness, folder: Path) -> None:
        self.system, self.folder = system, folder
        for number, month in enumerate(MONTHS):
            self.write(month, -1 if month == BAD else number)
        text = pipeline("months", folder / "{{ partition }}.csv", "[expression_is_true: v >= 0]")
        self.file = system.file(text)
        self.worker = WorkerProcess(system.environment, folder)

    def write(self, month: str, value: int) -> None:
        csv_file(
            self.folder / f"{month}.csv", [{"month": f"month {month}", "row": row, "v": value} for row in range(3)]
        )

    def backfill(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        done = self.system.command("backfill", *arguments, "--json")
        assert done.out, done.err
        return done.code, json.loads(done.out)

    def states(self, answer: dict[str, Any]) -> dict[str, str]:
        return {month: each["state"] for month, each in answer["partitions"].items()}

    def published(self) -> int:
        return list(self.states(self.backfill("status", "months")[1]).values()).count("published")


@pytest.mark.slow
def test_each_row_is_on_main_once_whatever_happens(months: Months, lake: LakeReader) -> None:
    asked = (str(months.file), "--partitions", f"{MONTHS[0]}..{MONTHS[-1]}", "--concurrency", "2")
    code, started = months.backfill(*asked, "--detach")
    assert (code, started["attached"]) == (0, False)
    wait_for(lambda: months.published() >= 1)
    months.worker.kill()
    months.worker = WorkerProcess(months.system.environment, months.folder)
    code, again = months.backfill(*asked)
    assert code == 3 and again["counts"] == {"published": 5, "kept out": 1}
    assert months.states(again)[BAD] == "kept out" and "expression_is_true" in again["partitions"][BAD]["reason"]
    assert lake_rows(lake) == [(f"month {month}", row) for month in MONTHS if month != BAD for row in range(3)]
    months.write(BAD, 7)
    code, repaired = months.backfill(str(months.file), "--only", "failed")
    assert (code, months.states(repaired)) == (0, {BAD: "published"})
    code, nothing = months.backfill(*asked)
    assert code == 0 and nothing["counts"] == {"skipped": 6}
    assert lake_rows(lake) == [(f"month {month}", row) for month in MONTHS for row in range(3)]
    listed = " ".join(months.system.command("list").out.split())
    assert "6 partitions: 5 published, 1 kept out" in listed and "1 partition: 1 published" in listed, listed
    refused = months.system.command("rollback", "months")
    assert refused.code == 2 and all(f"for {month}, of " in refused.err for month in MONTHS), refused.err


def lake_rows(lake: LakeReader) -> list[tuple[str, int]]:
    return sorted((row["month"], row["row"]) for row in lake.rows("t.months"))
