"""A pipeline at the limit: no workflow and no event loop parses its SQL, and its messages fit."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from temporalio import workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from runtime.temporal_client import converter
from sluice.checks.results import error_result
from sluice.contracts.audit import AuditInput, AuditResult
from sluice.contracts.run_request import Policy, RunInput, RunRequest
from sluice.pipeline.model import Pipeline
from sluice.sql import parsing
from tests.harness.workflow import FakeActivities, WorkflowHarness
from workflows.sandbox import sandbox
from workflows.write_audit_publish import WriteAuditPublish


def watch_parser(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, bool]]:
    """Clear the parser's cache; return a list of later parsing in a workflow or on the event loop."""
    parsed: list[tuple[bool, bool]] = []
    loop_thread = threading.current_thread()

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            parsed.append((workflow.in_workflow(), threading.current_thread() is loop_thread))
            return function(*args)

        return run

    for name in ("check_query", "check_condition", "traverse_scope"):
        monkeypatch.setattr(parsing, name, watched(getattr(parsing, name)))
    for cached in ("query_problem", "expression_problem", "without_comments", "_tables_of"):
        getattr(parsing, cached).cache_clear()
    return parsed


@pytest.mark.parametrize("checks", [400, pytest.param(5_000, marks=pytest.mark.slow)])
async def test_sql_is_parsed_before_a_workflow_and_beside_the_event_loop(
    time_skipping: WorkflowEnvironment, monkeypatch: pytest.MonkeyPatch, checks: int
) -> None:
    query = "SELECT c{0} FROM t.x JOIN t.y USING (id) WHERE c{0} < 0"
    listed: list[Any] = [{"check": "sql", "query": query.format(n)} for n in range(checks - 1)]
    listed.append({"check": "expression_is_true", "expression": "a > 0"})
    pipeline = Pipeline.model_validate({"name": "p", "write": {"job": "job.py"}, "tables": {"t.x": {"checks": listed}}})
    client = Client(time_skipping.client.service_client, data_converter=converter({}))
    fakes = FakeActivities()
    harness = WorkflowHarness(client, fakes)
    inputs = []

    async def audit(given: Any, _: int) -> AuditResult:
        inputs.append(AuditInput.model_validate(given))
        return AuditResult(decided=[error_result("t.x", n, each, "no") for n, each in enumerate(table.checks)])

    table = pipeline.tables["t.x"]
    fakes.overrides["audit_branch"] = audit
    policy = Policy(spark_queue=harness.queue)
    request = RunRequest(pipeline=pipeline, input=RunInput(digest="d"), starter="tester", policy=policy)
    parsed = watch_parser(monkeypatch)
    async with Worker(
        client,
        task_queue=harness.queue,
        workflows=[WriteAuditPublish],
        workflow_runner=sandbox(),
        activities=fakes.activities(),
        max_heartbeat_throttle_interval=timedelta(milliseconds=100),
    ):
        handle = await client.start_workflow(WriteAuditPublish.run, request, id=harness.queue, task_queue=harness.queue)
        result = await harness.end(handle)
    assert (result.outcome, len(result.checks), len(inputs)) == ("quarantined", checks, 1)
    assert len(parsed) >= 2 * checks - 1 and not any(map(any, parsed))
    events = [event.event_type async for event in handle.fetch_history_events()]
    assert EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED not in events
