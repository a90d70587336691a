"""The command that messages quote, the ports of a stack, and decisions that are refused early."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from cli.approval.approving import make_decision
from cli.program import command_of
from devstack.ports import last_ports
from sluice.contracts.run import RunResult, RunStatus
from sluice.errors import InvalidPipeline
from sluice.settings import Settings


@pytest.mark.parametrize(
    ("running", "known", "script", "expected"),
    [
        (".venv/bin/python", "bin/python", "run_workflow.py", ".venv/bin/python run_workflow.py"),
        ("bin/python", "bin/python", "run_workflow.py", "python run_workflow.py"),
        ("bin/python3", "bin/python3", "run_workflow.py", "python3 run_workflow.py"),
        ("/a b/python", "", "/opt/sluice/run_workflow.py", "'/a b/python' /opt/sluice/run_workflow.py"),
        ("bin/python", "", "/usr/bin/pytest", "python run_workflow.py"),
    ],
)
def test_the_command_starts_this_interpreter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, running: str, known: str, script: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    if known:
        (tmp_path / known).touch(mode=0o755)
    assert command_of(tmp_path / running, tmp_path / script, [str(tmp_path / "bin")]) == expected


def test_a_stack_has_the_ports_that_it_had_before(tmp_path: Path) -> None:
    file, names = tmp_path / "ports.json", ("A", "B")
    assert last_ports(file, names) == {}
    file.write_text(json.dumps({"A": 7, "B": "x", "C": 9}))
    assert last_ports(file, names) == {"A": 7}
    for broken in ("[]", "{", '"x"'):
        file.write_text(broken)
        assert last_ports(file, names) == {}


@pytest.mark.parametrize("by", ["ana", "Ana@elsewhere"])
def test_the_starter_is_refused_before_the_report_is_shown(by: str) -> None:
    """An earlier version first printed 25 lines and a question."""
    approval = {"required": 1, "excluded": "ana@host"}
    result = RunResult.model_validate(
        {"run_id": "r", "workflow_id": "w", "pipeline": "p", "audited_hash": "ab" * 32, "approval": approval}
    )
    status = RunStatus(stage="waiting for approval", events=[], result=result)
    output = io.StringIO()
    with pytest.raises(InvalidPipeline, match="started the run, and four eyes are required"):
        make_decision(
            "r",
            status,
            approve=True,
            by=by,
            reason="",
            named="",
            settings=Settings().approval,
            console=Console(file=output),
            link="",
        )
    assert output.getvalue() == ""
