"""`watch` says which run it follows, if a person names a pipeline, a landing zone or nothing exact."""

import asyncio
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any, cast

import pytest
import typer
from temporalio.client import WorkflowExecutionStatus

from cli.run import watch_command
from runtime.run.find_run import RunLookup


def lookup(status: WorkflowExecutionStatus) -> RunLookup:
    started = datetime(2026, 11, 28, 9, 30, tzinfo=timezone.utc)
    described = SimpleNamespace(status=status, start_time=started)
    return RunLookup(cast("Any", SimpleNamespace(id="orders-1f", run_id="01a2")), cast("Any", described))


@pytest.mark.parametrize(
    ("named", "status", "line"),
    [
        ("orders", WorkflowExecutionStatus.RUNNING, "it is under way."),
        ("orders", WorkflowExecutionStatus.COMPLETED, "it has ended."),
        ("orders-1f", WorkflowExecutionStatus.RUNNING, ""),
        ("01a2", WorkflowExecutionStatus.RUNNING, ""),
    ],
)
def test_the_followed_run_is_named(
    monkeypatch: pytest.MonkeyPatch, named: str, status: WorkflowExecutionStatus, line: str
) -> None:
    printed: list[str] = []
    context = SimpleNamespace(client=None, console=SimpleNamespace(print=lambda text, **_: printed.append(text)))

    def run_command(command: Any, *_: object, **_options: object) -> None:
        raise typer.Exit(asyncio.run(command(context, None)))

    monkeypatch.setattr(watch_command, "run_command", run_command)
    monkeypatch.setattr(watch_command, "find_run", lambda *_: asyncio.sleep(0, lookup(status)))
    monkeypatch.setattr(watch_command, "follow_and_report", lambda *_: asyncio.sleep(0, 0))
    with pytest.raises(typer.Exit):
        watch_command.watch(named)
    started = "The latest run of orders is orders-1f, started 2026-11-28 09:30 UTC; "
    assert printed == ([started + line] if line else [])
