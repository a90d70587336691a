"""A run that its worker cannot continue: `status` says why, `cancel` ends it, and no other run is taken for one."""

import asyncio
import uuid
from pathlib import Path

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.worker import Worker

from runtime.run.find_run import find_run
from runtime.run.stuck_run import why_stuck
from sluice.contracts.run_request import REVISION, RunInput, RunRequest
from sluice.pipeline.model import Pipeline
from tests.harness.command_line import run_command
from workflows.sandbox import sandbox
from workflows.write_audit_publish import WriteAuditPublish


async def _start(client: Client, queue: str) -> WorkflowHandle[object, object]:
    pipeline = Pipeline.model_validate({"name": "newer", "write": {"job": "job.py"}, "tables": {"t.newer": {}}})
    request = RunRequest(pipeline=pipeline, input=RunInput(digest="d"), starter="tester", revision=REVISION + 1)
    return await client.start_workflow("WriteAuditPublish", request, id=queue, task_queue=queue)


async def test_a_run_that_the_worker_cannot_continue_says_why_and_can_be_cancelled(
    client: Client, stack: dict[str, str], tmp_path: Path
) -> None:
    queue = f"newer-{uuid.uuid4().hex[:12]}"
    async with Worker(client, task_queue=queue, workflows=[WriteAuditPublish], workflow_runner=sandbox()):
        handle = await _start(client, queue)
        while not (why := await why_stuck(await find_run(client, queue))):
            await asyncio.sleep(0.1)
        assert f"needs revision {REVISION + 1} of the workflow" in why
        shown = await asyncio.to_thread(run_command, tmp_path, stack, "status", queue)
        assert shown.code == 7, shown
        assert f"the worker cannot continue {queue}: the run needs revision" in shown.err
        assert f"`cancel {queue}`" in shown.err
        cancelled = await asyncio.to_thread(run_command, tmp_path, stack, "cancel", queue, "--yes")
    assert "not known: the worker cannot continue it" in " ".join(cancelled.out.split())
    assert f"Ended {queue}." in cancelled.out
    assert (await handle.describe()).status == WorkflowExecutionStatus.TERMINATED


async def test_a_run_without_a_worker_is_not_stuck(client: Client) -> None:
    queue = f"newer-{uuid.uuid4().hex[:12]}"
    handle = await _start(client, queue)
    assert await why_stuck(await find_run(client, queue)) == ""
    await handle.terminate()
    assert await why_stuck(await find_run(client, queue)) == ""
