"""The fields of each run in `list`, and the distinction of runs of the same input."""

import asyncio
import os
from datetime import datetime, timedelta, timezone
from typing import Any, cast

import pytest
from rich.console import Console
from temporalio.client import WorkflowExecution, WorkflowExecutionStatus

from cli.context import CommandContext
from cli.run import list_runs
from devstack.stack import ROOT
from runtime.run.find_run import RunFilter
from sluice.errors import BadEnvironment
from tests.harness.command_line import run_command

AT = datetime(2026, 11, 22, 7, 45, tzinfo=timezone.utc)


class Listed:
    """A run in Temporal's list."""

    def __init__(self, run_id: str, memo: dict[str, Any] | Exception, status: str = "COMPLETED") -> None:
        self.id, self.run_id, self.start_time = "orders-4f6b2a1c9d3e", run_id, AT
        self.close_time = AT + timedelta(seconds=12)
        self.status = WorkflowExecutionStatus[status]
        self.search_attributes: dict[str, list[str]] = {"SluiceOutcome": ["published"], "SluiceTable": ["t.orders"]}
        self._memo = memo

    async def memo(self) -> dict[str, Any]:
        if isinstance(self._memo, Exception):
            raise self._memo
        return self._memo


def fields(listed: Listed) -> dict[str, Any]:
    return asyncio.run(list_runs._run_fields(cast(WorkflowExecution, listed), None))


def test_a_run_is_listed_with_what_it_loads() -> None:
    row = fields(Listed("r1", {"sluice.summary": "t.orders from 1 file, 12 bytes"}))
    assert (row["pipeline"], row["outcome"], row["stage"]) == ("orders", "published", "")
    assert row["summary"] == "t.orders from 1 file, 12 bytes"


@pytest.mark.parametrize("memo", [{}, BadEnvironment("this run is encrypted"), ValueError("another key")])
def test_a_run_is_listed_without_what_cannot_be_read(memo: dict[str, Any] | Exception) -> None:
    """It is encrypted by an unavailable key, or was started by an earlier version."""
    assert fields(Listed("r1", memo))["summary"] == ""


def test_earlier_runs_of_an_input_are_named_by_their_run_id() -> None:
    rows = [fields(Listed(run_id, {})) for run_id in ("r2", "r1")]
    with Console(width=100, record=True) as console:
        list_runs._print(cast(CommandContext, type("Context", (), {"console": console})), rows, {"r1"})
    lines = console.export_text().splitlines()
    assert [line.split()[0] for line in lines] == ["run", "orders-4f6b2a1c9d3e", "r1"]
    assert all(" ".join(line.split()).endswith("2026-11-22 07:45 UTC 12 s t.orders") for line in lines[1:])


def test_a_filter_is_a_query() -> None:
    wanted = RunFilter("orders", "t.orders", "quarantined", datetime(2026, 11, 22, tzinfo=timezone.utc))
    assert wanted.query.split(" AND ")[1:] == [
        'SluicePipeline = "orders"',
        'SluiceTable = "t.orders"',
        'SluiceOutcome = "quarantined"',
        'StartTime >= "2026-11-22T00:00:00+00:00"',
    ]
    assert RunFilter(state="running").query.endswith('ExecutionStatus = "Running"')
    assert RunFilter(workflow_ids=("a-1", "b-2")).query.endswith('WorkflowId IN ("a-1", "b-2")')


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--state", "quarantine"), "--state: no run is 'quarantine' (did you mean 'quarantined'?)"),
        (("--since", "yesterday"), "--since: 'yesterday' is not a time: write 2h, 7d, 2026-11-22 or 2026-11-22T07:45"),
        (("--pipeline", 'a" OR "b'), "has a quote or a backslash, which no such name has"),
        (("--schedules", "--table", "t.x"), "select runs, not schedules or backfills"),
    ],
)
def test_filters_that_are_none(options: tuple[str, ...], problem: str) -> None:
    ended = run_command(ROOT, dict(os.environ), "list", *options)
    assert (ended.code, problem in ended.err, ended.err.count("\n")) == (2, True, 1), ended.err
