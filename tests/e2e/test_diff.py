"""The rows that a run changes are shown before it is approved and after it is published, and those of a quarantine."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from devstack.stack import ROOT
from tests.harness.pipelines import csv_file
from tests.harness.system import SystemHarness

COMMANDS = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "diff.md").read_text(), re.S)
TABLE = "shop.diffed"
NAMES = {"orders": "diffed", "shop.orders": TABLE}
"""The names of this test for those of the document, which another test uses."""
PIPELINE = """\
name: diffed
write:
  source: {{path: "{source}"}}
  mode: merge
  keys: [id]
tables:
  shop.diffed:
    checks: [expression_is_true: amount > 0]
{more}
"""


def _numbers(system: SystemHarness, *words: str) -> tuple[str, int, int, int]:
    answer = system.command("diff", *words, "--json")
    assert answer.code == 0, answer
    (table,) = answer.json["tables"]
    return table["key"]["source"], table["rows"]["added"], table["rows"]["removed"], table["rows"]["changed"]


@pytest.mark.slow
def test_every_example_runs_for_a_run_that_waits(system: SystemHarness, tmp_path: Path) -> None:
    def pipeline(name: str, rows: list[dict[str, Any]], more: str = "") -> str:
        return PIPELINE.format(source=csv_file(tmp_path / f"{name}.csv", rows), more=more)

    ended = system.run(pipeline("first", [{"id": 1, "amount": 5.0}, {"id": 2, "amount": 6.0}]))
    assert ended.code == 0, ended.err
    assert _numbers(system, ended.json["main_after"]) == ("none", 2, 0, 0)

    changes = [{"id": 2, "amount": 7.0}, {"id": 3, "amount": 8.0}]
    run = system.start(pipeline("second", changes, "approval: {timeout: 1h}"), again=False)
    waiting = system.wait_for_stage(run, "waiting for approval")
    for named in (run, waiting["branch"], waiting["run_id"], "diffed"):
        assert _numbers(system, named) == ("merge keys", 1, 0, 1)
    outputs = []
    for line in (line for text in COMMANDS for line in text.splitlines()):
        _, program, *arguments = shlex.split(line)
        assert program == "run_workflow.py"
        output = system.command(*(NAMES.get(each, each) for each in arguments))
        assert output.code == 0, output
        outputs.append(output.out)
    assert "1 row added, 1 changed" in outputs[0] and "6.0 → 7.0" in outputs[0] and "key id (merge keys)" in outputs[0]

    system.approve(run)
    published = system.wait_for_end(run)
    assert published.code == 0, published.err
    assert _numbers(system, run) == ("merge keys", 1, 0, 1)
    again = system.run(pipeline("second", changes, "approval: {timeout: 1h}"))
    assert again.json["cause"] == "already_published", again.err
    assert _numbers(system, run) == ("merge keys", 1, 0, 1), "the latest run of this id loaded nothing"
    assert _numbers(system, ended.json["run_id"], run) == ("merge keys", 1, 0, 1)

    kept = system.run(pipeline("third", [{"id": 1, "amount": -1.0}]))
    assert kept.code == 3, kept.err
    for named in (kept.json["run_id"], kept.json["branch"]):
        assert _numbers(system, named) == ("merge keys", 0, 0, 1)
    checked = system.command("diff", "no-such-run")
    assert checked.code == 2 and "there is no branch, run or commit 'no-such-run'" in checked.err
