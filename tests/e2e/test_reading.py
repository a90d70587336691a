"""The examples of `docs/reading.md` work: each block of Python and of the shell is run on a published table."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from devstack.stack import ROOT
from tests.harness.pipelines import csv_file
from tests.harness.system import SystemHarness

BLOCKS = re.findall(r"```(\w+)\n(.*?)```", (ROOT / "docs" / "reading.md").read_text(), re.S)
ORDERS = [
    {"id": 1, "status": "open", "amount": 5.0},
    {"id": 2, "status": "paid", "amount": 20.0},
    {"id": 3, "status": "paid", "amount": 30.0},
]
PIPELINE = (
    'name: reading\nwrite: {{source: {{path: "{source}"}}}}\ntables: {{shop.orders: {{checks: [not_null: id]}}}}\n'
)


@pytest.fixture
def published(system: SystemHarness, tmp_path: Path) -> SystemHarness:
    source = csv_file(tmp_path / "orders.csv", ORDERS)
    ended = system.run(PIPELINE.format(source=source), again=True)
    assert ended.code == 0, ended.err
    return system


def _home(system: SystemHarness, folder: Path) -> Path:
    """Return a folder with a user's `.sluice`: the stack's file and the jars."""
    home = folder / ".sluice"
    home.mkdir()
    (home / "stack.json").write_text(json.dumps({"environment": dict(system.environment)}))
    (home / "jars").symlink_to(Path(system.environment["SLUICE_HOME"]).resolve() / "jars")
    return folder


@pytest.mark.slow
def test_every_example_runs(published: SystemHarness, tmp_path: Path) -> None:
    published.run(
        'name: empty\nwrite: {mode: sql, statements: ["DELETE FROM shop.orders"]}\ntables: {shop.orders: {}}\n'
    )
    ended = published.run(PIPELINE.format(source=csv_file(tmp_path / "fresh.csv", ORDERS)), again=True)
    assert ended.code == 0, ended.err
    outputs = []
    for line in (line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()):
        _, program, *arguments = shlex.split(line)
        assert program == "run_workflow.py"
        result = published.command(*arguments)
        assert result.code == 0, result
        outputs.append(result.out)
    assert outputs[0].split()[:2] == ["status", "orders"] and ["paid", "2"] in [
        line.split() for line in outputs[0].splitlines()
    ]
    assert outputs[1].splitlines()[0] == "id,status,amount" and "2,paid,20.0" in outputs[1].splitlines()
    program = "\n".join(text for kind, text in BLOCKS if kind == "python")
    python = subprocess.run(
        [sys.executable, "-c", program],
        cwd=_home(published, tmp_path),
        env={**os.environ, **published.environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert python.returncode == 0, python.stderr
    assert python.stdout.splitlines()[0] == "2" and "50.0" in python.stdout and "|  paid|     2|" in python.stdout


def test_a_branch_that_waits_is_read_before_it_is_published(published: SystemHarness, tmp_path: Path) -> None:
    more = [{"id": 4, "status": "new", "amount": 1.0}]
    pipeline = PIPELINE.format(source=csv_file(tmp_path / "more.csv", more)) + "approval: {timeout: 1h}\n"
    run = published.start(pipeline)
    waiting = published.wait_for_stage(run, "waiting for approval")
    sql = "SELECT count(*)::INT AS n FROM shop.orders WHERE status = 'new'"
    for ref, count in (
        ((), 0),
        (("--ref", waiting["branch"]), 1),
        (("--ref", waiting["run_id"]), 1),
        (("--ref", run), 1),
    ):
        answer = published.command("query", sql, *ref, "--json")
        assert answer.code == 0 and answer.json == {"rows": [{"n": count}]}, answer
    wrong = published.command("query", "SELECT * FROM shop.oders")
    assert (wrong.code, wrong.err.strip()) == (
        2,
        "sluice: there is no table shop.oders on main (did you mean 'shop.orders'?)",
    )
    published.cancel(run)
    assert published.wait_for_end(run).code == 5
