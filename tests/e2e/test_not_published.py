"""`run --no-publish`: the run writes, audits and reports on a branch, and leaves nothing."""

from pathlib import Path

from tests.harness.lake import LakeReader
from tests.harness.pipelines import csv_file, pipeline
from tests.harness.system import SystemHarness

CHECK = "[unique: id, expression_is_true: v > 0]"


def test_a_check_for_a_pull_request(system: SystemHarness, lake: LakeReader, tmp_path: Path) -> None:
    source = csv_file(tmp_path / "in.csv", [{"id": 1, "v": 1}, {"id": 2, "v": 2}])
    text = pipeline("only_checked", source, CHECK)
    file, before = str(system.file(text)), lake.head()
    checked = system.command("run", file, "--no-publish", "--json")
    assert (checked.code, checked.json["outcome"], checked.json["tables"]["t.only_checked"]["added_rows"]) == (
        *(0, "checked", 2),
    )
    assert (lake.head(), lake.branches(checked.json["run_id"])) == (before, [])
    bad = csv_file(tmp_path / "bad.csv", [{"id": 1, "v": -4711}, {"id": 1, "v": 2}])
    refused = system.command(
        "run", str(system.file(pipeline("only_checked", bad, CHECK))), "--no-publish", "--report", "md"
    )
    assert refused.code == 3 and refused.out.startswith("## only_checked: discarded\n"), refused
    assert "| **fail** | t.only_checked | unique(id) | 2 bad rows | no value twice | duckdb |" in refused.out
    assert "4711" not in refused.out and "Started run" in refused.err
    assert (lake.head(), [each for each in lake.branches() if "only_checked" in each]) == (before, [])

    listed = system.command("status", "only_checked", "--json")
    assert (listed.code, listed.json["outcome"]) == (0, "discarded"), listed.err
    published = system.run(text)
    assert (published.code, published.json["outcome"]) == (0, "published"), "the check left its file free"
    again = system.command("status", published.json["workflow_id"], "--report", "md")
    assert (again.code, again.out.splitlines()[0]) == (0, "## only_checked: published")
    twice = system.command("status", published.json["workflow_id"], "--report", "md", "--json")
    assert twice.code == 2 and "give one of them" in twice.err
