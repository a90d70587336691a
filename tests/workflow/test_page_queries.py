"""Queries by the API on Temporal: the answer without a worker, and the end of a query whose client has left."""

import asyncio
import uuid

from temporalio.client import Client, WorkflowExecutionStatus

from tests.harness.page import browser
from tests.harness.waiting import in_time, until

SQL = {"sql": "SELECT 1 AS n"}


async def test_a_query_without_a_worker_says_so(client: Client) -> None:
    queue = uuid.uuid4().hex
    page = browser(client, sluice_task_queue=queue, sluice_worker_wait=1)
    answer = await in_time(page.post_json("/api/query", SQL))
    assert answer.status == 503 and f"no worker takes work from the task queue {queue!r}" in answer.json["error"]


async def test_a_client_that_leaves_ends_its_query(client: Client) -> None:
    queue, leaves = uuid.uuid4().hex, asyncio.Event()
    page = browser(client, sluice_task_queue=queue, sluice_worker_wait=300)
    body, kind = b'{"sql": "SELECT 1 AS n"}', {"content-type": "application/json"}
    answering = asyncio.create_task(page.send("POST", "/api/query", body, kind, leaves=leaves))

    async def has(status: WorkflowExecutionStatus) -> bool:
        query = f'WorkflowType = "LakeQuery" AND TaskQueue = "{queue}"'
        return [each.status async for each in client.list_workflows(query)] == [status]

    await until(lambda: has(WorkflowExecutionStatus.RUNNING))
    assert not answering.done()
    leaves.set()
    await in_time(answering)
    await until(lambda: has(WorkflowExecutionStatus.TERMINATED))
