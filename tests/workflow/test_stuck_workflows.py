"""A run that its worker cannot continue: `status` says why, `cancel` ends it, and no other run is taken for one."""

import asyncio
import time
import uuid
from pathlib import Path

from temporalio import workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.worker import Worker

from runtime.run.find_run import RunLookup, find_run
from runtime.stuck_workflow import StuckWorkflow, find_stuck, why_stuck
from sluice.contracts.run_request import REVISION, RunInput, RunRequest
from sluice.pipeline.model import Pipeline
from tests.harness.command_line import run_command
from tests.harness.page import browser
from workflows.sandbox import sandbox
from workflows.write_audit_publish import WriteAuditPublish

FAILED = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED


async def _start(client: Client, queue: str) -> WorkflowHandle[object, object]:
    pipeline = Pipeline.model_validate({"name": "newer", "write": {"job": "job.py"}, "tables": {"t.newer": {}}})
    request = RunRequest(pipeline=pipeline, input=RunInput(digest="d"), starter="tester", revision=REVISION + 1)
    return await client.start_workflow("WriteAuditPublish", request, id=queue, task_queue=queue)


async def _stuck(client: Client, run: str) -> StuckWorkflow | None:
    lookup = await find_run(client, run)
    return await find_stuck(lookup.handle, lookup.description)


async def _why(client: Client, run: str) -> str:
    lookup = await find_run(client, run)
    return await why_stuck(lookup.handle, lookup.description)


async def test_a_run_that_the_worker_cannot_continue_says_why_and_can_be_cancelled(
    client: Client, stack: dict[str, str], tmp_path: Path
) -> None:
    queue = f"newer-{uuid.uuid4().hex[:12]}"
    async with Worker(client, task_queue=queue, workflows=[WriteAuditPublish], workflow_runner=sandbox()):
        handle = await _start(client, queue)
        while not (why := await _why(client, queue)):
            await asyncio.sleep(0.1)
        assert f"needs revision {REVISION + 1} of the workflow" in why
        shown = await asyncio.to_thread(run_command, tmp_path, stack, "status", queue)
        assert shown.code == 7, shown
        assert f"the worker cannot continue {queue}: the run needs revision" in shown.err
        assert f"`cancel {queue}`" in shown.err
        page = await browser(client).get(f"/runs/{queue}/{handle.first_execution_run_id}")
        assert "The worker cannot continue this run: the run needs revision" in page.text
        asked = await asyncio.to_thread(run_command, tmp_path, stack, "cancel", queue, "--yes")
        assert f"Asked {queue} to stop. If no worker continues it" in " ".join(asked.out.split())
        assert (await handle.describe()).status == WorkflowExecutionStatus.RUNNING, "another worker may continue it"
        while not (stuck := await _stuck(client, queue)) or not stuck.is_cancel_requested:
            await asyncio.sleep(0.1)
        cancelled = await asyncio.to_thread(run_command, tmp_path, stack, "cancel", queue, "--yes")
    assert "not known: the worker cannot continue it" in " ".join(cancelled.out.split())
    assert f"Ended {queue}." in cancelled.out
    assert (await handle.describe()).status == WorkflowExecutionStatus.TERMINATED


async def test_a_run_without_a_worker_is_not_stuck_and_is_cancelled_by_the_next_one(
    client: Client, stack: dict[str, str], tmp_path: Path
) -> None:
    queue = f"newer-{uuid.uuid4().hex[:12]}"
    handle = await _start(client, queue)
    assert await _why(client, queue) == ""
    listed = await asyncio.to_thread(run_command, tmp_path, {**stack, "SLUICE_TASK_QUEUE": queue}, "list")
    assert f"hint: {queue} waits: no worker takes work from the task queue '{queue}'; start one with" in listed.err
    asked = await asyncio.to_thread(run_command, tmp_path, stack, "cancel", queue, "--yes")
    assert f"Asked {queue} to stop. It stops when a worker answers: start one" in " ".join(asked.out.split()), asked
    await handle.terminate()
    assert await _why(client, queue) == ""


@workflow.defn(name="SlowFirstStep", sandboxed=False)
class SlowFirstStep:
    """A workflow whose first tries take longer than a worker permits."""

    @workflow.run
    async def run(self) -> None:
        time.sleep(2.5)


async def test_a_run_whose_worker_is_too_slow_is_not_stuck(client: Client) -> None:
    queue = f"slow-{uuid.uuid4().hex[:12]}"
    async with Worker(client, task_queue=queue, workflows=[SlowFirstStep]):
        handle = await client.start_workflow("SlowFirstStep", id=queue, task_queue=queue)
        while (await handle.describe()).raw_description.pending_workflow_task.attempt < 2:
            await asyncio.sleep(0.1)
        lookup = RunLookup(handle, await handle.describe())
        failed = [each async for each in handle.fetch_history_events() if each.event_type == FAILED]
        assert "TMPRL1101" in failed[0].workflow_task_failed_event_attributes.failure.message
        assert await find_stuck(lookup.handle, lookup.description) is None
        await handle.terminate()
