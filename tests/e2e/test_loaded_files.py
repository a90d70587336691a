"""Each file is loaded once: in a folder that grows, by two runs at once, and by a late release."""

from pathlib import Path

import pytest

from sluice.errors import RunUnderWay
from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.system import SystemHarness


def test_a_folder_grows_file_by_file(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    landing = tmp_path / "landing"
    csv_file(landing / "a.csv", [{"id": 1}])
    first = system.run(pipeline("grows", landing / "*.csv"))
    assert first.json["input"]["files"] == 1 and first.json["input"]["summary"] == ""
    csv_file(landing / "b.csv", [{"id": 2}])
    csv_file(landing / "copy of a.csv", [{"id": 1}])
    second = system.run(pipeline("grows", landing / "*.csv"))
    assert (second.code, second.json["input"]["files"], second.json["input"]["loaded_before"]) == (0, 1, 2)
    assert first.json["workflow_id"] in second.json["input"]["summary"]
    assert sorted(row["id"] for row in lake.rows("t.grows")) == [1, 2]
    other = pipeline("other", landing / "*.csv").replace("t.other", "t.grows")
    refused = system.run(other)
    assert (refused.code, refused.json["cause"]) == (0, "already_published")
    assert system.run(other, again=True).code == 0 and len(lake.rows("t.grows")) == 4
    listed = system.command("files", str(landing / "b.csv"), "--table", "t.grows", "--json").json
    assert {each["outcome"] for each in listed["files"]} == {"published"}
    assert second.json["run_id"] in {each["run_id"] for each in listed["files"]}
    human = system.command("files", "--table", "t.grows")
    line = next(each for each in human.out.splitlines() if str(landing / "b.csv") in each)
    assert human.code == 0 and "published" in line and any("t.grows" in each for each in human.out.splitlines())
    assert second.json["workflow_id"] in human.out


def test_two_runs_at_once_that_share_a_file(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    shared = csv_file(tmp_path / "in" / "shared.csv", [{"id": 1}])
    slow = system.start(pipeline("shares", shared, more="approval: {timeout: 1h}"))
    system.wait_for_stage(slow, "waiting for approval")
    csv_file(tmp_path / "in" / "own.csv", [{"id": 2}])
    assert system.run(pipeline("shares-too", tmp_path / "in" / "*.csv").replace("t.shares_too", "t.shares")).code == 0
    system.approve(slow)
    ended = system.wait_for_end(slow)
    assert (ended.code, ended.json["cause"]) == (0, "already_published"), ended
    assert [each["resolved"] for each in ended.json["conflicts"]] == ["rewritten"]
    assert sorted(row["id"] for row in lake.rows("t.shares")) == [1, 2]
    assert not lake.branches(ended.json["run_id"])


def test_a_quarantine_whose_file_was_published_meanwhile(
    system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    source = csv_file(tmp_path / "late.csv", [{"id": 1, "v": -1}])
    kept = system.run(pipeline("late", source, "[expression_is_true: v > 0]"))
    assert kept.code == 3
    corrected = pipeline("late", source, "[expression_is_true: v > -5]")
    assert system.run(corrected).code == 0
    file = str(system.file(corrected))
    release = ("quarantine", "release", kept.json["run_id"], "--pipeline", file, "--json", "--yes")
    refused = system.command(*release)
    assert refused.code == 2 and "late.csv" in refused.err and "--again" in refused.err
    assert len(lake.rows("t.late")) == 1 and lake.branches(kept.json["run_id"])


def test_an_edited_pipeline_on_an_input_that_is_under_way(system: SystemHarness, tmp_path: Path) -> None:
    source = csv_file(tmp_path / "edited.csv", [{"id": 1}])
    text = pipeline("edited", source, more="approval: {timeout: 1h}")
    run = system.start(text)
    assert system.start(text) == run
    with pytest.raises(RunUnderWay, match="another version of the pipeline 'edited'"):
        system.start(pipeline("edited", source, "[row_count: {min: 2}]", "approval: {timeout: 1h}"))
    with pytest.raises(RunUnderWay, match="without --again"):
        system.start(text, again=True)
    system.cancel(run)
    assert system.wait_for_end(run).code == 5
