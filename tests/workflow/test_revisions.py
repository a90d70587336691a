"""Revisions: a run that a newer release started waits unchanged for a worker that supports its revision."""

import asyncio
import uuid
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowExecutionStatus
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from sluice.contracts.publish import Publication
from sluice.contracts.run_request import REVISION, RunInput, RunRequest
from sluice.pipeline.model import Pipeline
from tests.harness.workflow import MERGED, WorkflowHarness
from workflows.sandbox import sandbox
from workflows.write_audit_publish import WriteAuditPublish


async def test_a_run_ends_workflow_tasks_by_an_activity_and_not_by_a_timer(harness: WorkflowHarness) -> None:
    async def collide(_: Any, times: int) -> Publication:
        return MERGED if times > 1 else Publication(merged=False, conflicts=["t.x"])

    harness.fakes.overrides["publish_branch"] = collide
    handle = await harness.start()
    assert (await harness.end(handle)).attempts == 2
    events = (await handle.fetch_history()).events
    timers = sum(event.event_type == EventType.EVENT_TYPE_TIMER_FIRED for event in events)
    assert (harness.fakes.calls.count("checkpoint"), timers) == (2, 1)


async def test_a_run_of_a_newer_revision_waits_for_a_newer_worker(own_time_skipping: WorkflowEnvironment) -> None:
    client = own_time_skipping.client
    queue = str(uuid.uuid4())
    pipeline = Pipeline.model_validate({"name": "newer", "write": {"job": "job.py"}, "tables": {"t.newer": {}}})
    request = RunRequest(pipeline=pipeline, input=RunInput(digest="d"), starter="tester", revision=REVISION + 1)
    async with Worker(client, task_queue=queue, workflows=[WriteAuditPublish], workflow_runner=sandbox()):
        handle = await client.start_workflow(WriteAuditPublish.run, request, id=queue, task_queue=queue)
        messages: list[str] = []
        while not messages:
            await asyncio.sleep(0.1)
            events = (await handle.fetch_history()).events
            failures = [event.workflow_task_failed_event_attributes.failure.message for event in events]
            messages = [message for message in failures if message]
        assert "upgrade the worker" in messages[0]
        assert (await handle.describe()).status == WorkflowExecutionStatus.RUNNING
        await handle.terminate()
