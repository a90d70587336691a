"""The merge queue: runs get the slot in the order of their requests, also if the run with the slot is lost."""

import uuid
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from temporalio import workflow
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.publishing.merge_queue import MergeQueueActivity
from sluice.contracts.merge_queue import SLOT_SIGNAL, MergeTicket, queue_id
from tests.harness.waiting import in_time
from workflows.publishing.merge_queue import MergeQueue

_TOO_LONG = 8
HOLDERS: list[str] = []
"""The workflow ids of the runs that got the slot, in order."""


@workflow.defn
class FakeRun:
    """A fake run that waits for the slot, keeps it for some seconds, and releases it unless it keeps it too long."""

    @workflow.init
    def __init__(self, ticket: MergeTicket, seconds: int) -> None:
        self.has_slot = False

    @workflow.run
    async def run(self, ticket: MergeTicket, seconds: int) -> None:
        await workflow.wait_condition(lambda: self.has_slot)
        HOLDERS.append(ticket.workflow_id)
        await workflow.sleep(seconds)
        if seconds < _TOO_LONG:
            queue = workflow.get_external_workflow_handle(queue_id("test", "main", ticket.table))
            await queue.signal("release", ticket)

    @workflow.signal(name=SLOT_SIGNAL)
    def merge_slot_free(self, ticket: MergeTicket) -> None:
        self.has_slot = True


class QueueHarness:
    """A table, and runs that wait for its merge slot."""

    def __init__(self, client: Client) -> None:
        self.client, self.task_queue, self.table = client, str(uuid.uuid4()), f"t.{uuid.uuid4().hex}"
        self.activity = MergeQueueActivity(self.client, "test", "main", self.task_queue)

    async def enqueue(self, name: str, seconds: int = 1) -> WorkflowHandle[FakeRun, None]:
        """Start a run that waits for the slot."""
        ticket = MergeTicket(table=self.table, run_id="", workflow_id=f"{name}-{self.task_queue}")
        run = await self.client.start_workflow(
            FakeRun.run, args=[ticket, seconds], id=ticket.workflow_id, task_queue=self.task_queue
        )
        ticket = ticket.model_copy(update={"run_id": run.first_execution_run_id})
        await self.activity.enqueue(ticket)
        return run


@pytest.fixture
async def queue(own_time_skipping: WorkflowEnvironment, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[QueueHarness]:
    monkeypatch.setattr("workflows.publishing.merge_queue._SLOT_TIMEOUT", timedelta(seconds=3))
    monkeypatch.setattr("workflows.publishing.merge_queue._IDLE_TIMEOUT", timedelta(seconds=1))
    client = own_time_skipping.client
    harness = QueueHarness(client)
    HOLDERS.clear()
    async with Worker(
        client,
        task_queue=harness.task_queue,
        workflows=[MergeQueue, FakeRun],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        yield harness


async def test_first_come_first_served(queue: QueueHarness) -> None:
    runs = [await queue.enqueue(name) for name in "abcd"]
    for run in runs:
        await run.result()
    assert [each[0] for each in HOLDERS] == list("abcd")


async def test_a_run_that_ended_or_keeps_the_slot_holds_up_no_other(queue: QueueHarness) -> None:
    slow = await queue.enqueue("a", seconds=_TOO_LONG)
    terminated = await queue.enqueue("b")
    last = await queue.enqueue("c")
    await terminated.terminate()
    await in_time(last.result())
    assert [each[0] for each in HOLDERS] == ["a", "c"]
    assert (await slow.describe()).status == WorkflowExecutionStatus.RUNNING
    await slow.result()


async def test_an_empty_queue_ends(queue: QueueHarness) -> None:
    run = await queue.enqueue("a")
    await run.result()
    await in_time(queue.client.get_workflow_handle(queue_id("test", "main", queue.table)).result())
