"""Concurrent runs into one table: each is published, every row once, by a rebase of its files instead of a rewrite."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.harness.faults import on_both_catalogs
from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.system import EndedRun, SystemHarness

pytestmark = pytest.mark.warm


def _ended(system: SystemHarness, runs: list[str]) -> list[EndedRun]:
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(system.wait_for_end, runs))


@pytest.mark.parametrize("number_of_runs", [4, pytest.param(10, marks=pytest.mark.matrix)])
@on_both_catalogs(pytest.mark.matrix)
def test_runs_at_once_into_one_table_that_is_not_there_yet(
    number_of_runs: int, system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    """Runs at once into a table that is not there yet: as many publications, every row once, nothing rewritten."""
    table = f"concurrent_{number_of_runs}"
    checks = "[not_null: id, unique: id, row_count: {min: 5}, not_null: {column: id, scope: table}]"
    runs = []
    for number in range(number_of_runs):
        source = csv_file(tmp_path / f"{number}.csv", [{"id": number * 5 + i, "run": number} for i in range(5)])
        text = pipeline(f"concurrent-{number}", source, checks).replace(f"t.concurrent_{number}", f"t.{table}")
        runs.append(system.start(text))
    ended = _ended(system, runs)
    assert [(outcome.code, outcome.json["outcome"]) for outcome in ended] == [(0, "published")] * number_of_runs
    assert sorted(row["id"] for row in lake.rows(f"t.{table}")) == list(range(number_of_runs * 5))
    taken = [conflict for outcome in ended for conflict in outcome.json["conflicts"]]
    assert {conflict["resolved"] for conflict in taken} <= {"rebased"}, taken
    assert taken or number_of_runs < 10, "ten runs at once meet at least one conflict"
    assert not any(lake.branches(outcome.json["run_id"]) for outcome in ended)
    for outcome in ended:
        commit = lake.commit(outcome.json["main_after"])
        assert commit["parentCommitHashes"][1] == outcome.json["audited_hash"]


@pytest.mark.parametrize(
    ("write", "resolved"),
    [("mode: append", "rebased"), ("mode: overwrite", "rewritten"), ("{mode: merge, keys: [id]}", "rewritten")],
)
@pytest.mark.matrix
@on_both_catalogs(pytest.mark.matrix)
def test_main_moved_while_people_decided(
    write: str, resolved: str, system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    """Main moves while people decide: appends are rebased, other modes rewritten, people asked again."""
    name = "moved-" + "".join(filter(str.isalpha, write))
    table = f"t.{name.replace('-', '_')}"
    first = csv_file(tmp_path / "first.csv", [{"id": 1, "v": 1}, {"id": 2, "v": 1}])
    second = csv_file(tmp_path / "second.csv", [{"id": 2, "v": 2}, {"id": 3, "v": 2}])
    assert system.run(pipeline(name, first)).code == 0
    slow = pipeline(name, second, more="approval: {timeout: 1h}").replace(
        "write:\n", "write:\n" + "".join(f"  {part.strip()}\n" for part in write.strip("{}").split(", ", 1)), 1
    )
    run = system.start(slow)
    system.wait_for_stage(run, "waiting for approval")
    other = csv_file(tmp_path / "other.csv", [{"id": 9, "v": 9}])
    assert system.run(pipeline(name, other)).code == 0
    system.approve(run)
    again = system.wait_for_attempt(run, 2)  # the rebase has another hash, which needs another decision
    assert [each["resolved"] for each in again["conflicts"]] == [resolved]
    system.approve(run)
    ended = system.wait_for_end(run)
    assert (ended.code, ended.json["outcome"]) == (0, "published"), ended
    rows = sorted((row["id"], row["v"]) for row in lake.rows(table))
    expected = {
        "mode: append": [(1, 1), (2, 1), (2, 2), (3, 2), (9, 9)],
        "mode: overwrite": [(2, 2), (3, 2)],
        "{mode: merge, keys: [id]}": [(1, 1), (2, 2), (3, 2), (9, 9)],
    }
    assert rows == expected[write]
