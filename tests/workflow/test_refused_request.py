"""A run whose request the worker's release refuses fails with the reason, and does not hang."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from runtime.codec import new_codec_key
from runtime.run.find_run import describe_run, read_result
from runtime.temporal_client import converter
from sluice.contracts.run_request import REVISION, RunInput, RunRequest
from sluice.pipeline.model import Pipeline
from workflows.sandbox import sandbox
from workflows.write_audit_publish import WriteAuditPublish


def _request(**changes: Any) -> dict[str, Any]:
    pipeline = Pipeline.model_validate({"name": "older", "write": {"job": "job.py"}, "tables": {"t.x": {}}})
    request = RunRequest(pipeline=pipeline, input=RunInput(digest="d"), starter="tester")
    plain = request.model_dump(mode="json", by_alias=True)
    plain["pipeline"]["tables"]["t.x"] = {"checks": [{"check": "not_null", "column": "a", "unheard": "secret-value"}]}
    return {**plain, **changes}


@pytest.mark.parametrize("key", ["", new_codec_key()], ids=["plain", "encrypted"])
async def test_a_run_whose_request_the_worker_refuses_fails_with_the_reason(
    time_skipping: WorkflowEnvironment, key: str, tmp_path: Path
) -> None:
    environment = {}
    if key:
        environment["SLUICE_CODEC_KEY_FILE"] = str(tmp_path / "key")
        (tmp_path / "key").write_text(key)
    client = Client(time_skipping.client.service_client, data_converter=converter(environment))
    queue = str(uuid.uuid4())
    async with Worker(client, task_queue=queue, workflows=[WriteAuditPublish], workflow_runner=sandbox()):
        await client.start_workflow("WriteAuditPublish", _request(), id=queue, task_queue=queue)
        run = await _ended(client, queue)
        result = await read_result(client, run.description)
    assert run.description.status == WorkflowExecutionStatus.FAILED
    assert result is not None
    assert (result.outcome, result.cause) == ("failed", "error")
    assert "this release of Sluice refuses the request of the run: pipeline.tables.`t.x`.checks.0" in result.reason
    assert "unheard: Extra inputs are not permitted" in result.reason
    assert "secret-value" not in result.reason


async def test_a_refused_request_of_a_newer_revision_waits_for_a_newer_worker(
    own_time_skipping: WorkflowEnvironment,
) -> None:
    client = own_time_skipping.client
    queue = str(uuid.uuid4())
    async with Worker(client, task_queue=queue, workflows=[WriteAuditPublish], workflow_runner=sandbox()):
        request = _request(revision=REVISION + 1)
        handle = await client.start_workflow("WriteAuditPublish", request, id=queue, task_queue=queue)
        failed = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
        while failed not in [event.event_type for event in (await handle.fetch_history()).events]:
            await asyncio.sleep(0.1)
        assert (await handle.describe()).status == WorkflowExecutionStatus.RUNNING
        await handle.terminate()


async def _ended(client: Client, workflow_id: str) -> Any:
    for _ in range(300):
        run = await describe_run(client, workflow_id, None)
        assert run is not None
        if run.ended:
            return run
        await asyncio.sleep(0.1)
    await client.get_workflow_handle(workflow_id).terminate()
    pytest.fail("the run hangs")
