"""The content of merge commits: the message and metadata of a start, and of the roll-back of its run."""

import json
from pathlib import Path

import pytest

from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.system import SystemHarness

LONG = {f"long.{number}": "x" * 1000 for number in range(15)}
MORE = f"publish: {{message: Of it, metadata: {json.dumps({'ticket': 'F-1', **LONG})}}}\napproval: {{timeout: 1h}}"


def metadata(lake: LakeReader, commit: str) -> dict[str, str]:
    values = lake.commit(commit)["allProperties"]
    return {key: value[0] for key, value in values.items() if key.startswith("sluice.metadata.")}


@pytest.mark.slow
def test_a_start_replaces_what_the_pipeline_says_of_its_commit(
    system: SystemHarness, lake: LakeReader, tmp_path: Path
) -> None:
    text = pipeline("stated", csv_file(tmp_path / "in.csv", [{"id": 1}]), more=MORE)
    stated = ("--message", "Täglich\nzum {run_id}", "--metadata", "ticket=F-2", "--metadata", "note=a=b")
    started = system.run_command(text, *stated, "--detach")
    assert started.code == 0, started
    run = started.json["workflow_id"]
    same = system.run_command(text, *stated, "--detach")
    assert same.json["run_id"] == started.json["run_id"]
    other = system.run_command(text, "--message", "Another", "--detach")
    assert other.code == 2 and "its merge commit has another message or other metadata" in other.err
    waiting = system.wait_for_stage(run, "waiting for approval")
    assert waiting["publish"]["message"] == "Täglich\nzum {run_id}"
    system.approve(run)
    ended = system.wait_for_end(run)
    assert ended.json["outcome"] == "published", ended
    published = ended.json["main_after"]
    assert lake.commit(published)["message"] == "Täglich\nzum {run_id}"
    assert metadata(lake, published) == {
        "sluice.metadata.ticket": "F-2",
        "sluice.metadata.note": "a=b",
        **{f"sluice.metadata.{key}": value for key, value in LONG.items()},
    }

    rolled_back = system.command("rollback", ended.json["run_id"], "--detach", "--json", "--yes")
    back = rolled_back.json["workflow_id"]
    system.wait_for_stage(back, "waiting for approval")
    system.approve(back)
    result = system.wait_for_end(back).json
    assert (result["outcome"], result["publish"]) == (
        "published",
        {"message": "", "metadata": {}, "allow_partial": False},
    )
    assert lake.commit(result["main_after"])["message"] == f"Publish t.stated from stated ({back})"
    assert metadata(lake, result["main_after"]) == {}
    assert result["summary"]["dropped_tables"] == ["t.stated"] and result["summary"]["removed"] == 1
