"""Turns at a table: in the order of asking, whatever becomes of those who have one."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from temporalio import workflow
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.merge_queue import MergeQueueActivity
from sluice.contracts.merge_queue import SLOT_SIGNAL, MergeTicket, queue_id
from workflows.merge_queue import MergeQueue

_TOO_LONG = 8
ORDER: list[str] = []
"""Who had a turn, in that order."""


@workflow.defn
class Waiting:
    """A run that waits for its turn, keeps it for some seconds, and says whether it gives it back."""

    @workflow.init
    def __init__(self, turn: MergeTicket, seconds: int) -> None:
        self.mine = False

    @workflow.run
    async def run(self, turn: MergeTicket, seconds: int) -> None:
        await workflow.wait_condition(lambda: self.mine)
        ORDER.append(turn.workflow_id)
        await workflow.sleep(seconds)
        if seconds < _TOO_LONG:
            queue = workflow.get_external_workflow_handle(queue_id("test", turn.table))
            await queue.signal("give_back", turn)

    @workflow.signal(name=SLOT_SIGNAL)
    def your_turn(self, turn: MergeTicket) -> None:
        self.mine = True


class Line:
    """A table, and runs that stand in line at it."""

    def __init__(self, client: Client) -> None:
        self.client, self.queue, self.table = client, str(uuid.uuid4()), f"t.{uuid.uuid4().hex}"
        self.asking = MergeQueueActivity(self.client, "test", self.queue)

    async def stands(self, name: str, seconds: int = 1) -> WorkflowHandle[Waiting, None]:
        """Let a run stand in line."""
        turn = MergeTicket(table=self.table, run_id="", workflow_id=f"{name}-{self.queue}", attempt=1)
        run = await self.client.start_workflow(
            Waiting.run, args=[turn, seconds], id=turn.workflow_id, task_queue=self.queue
        )
        turn = turn.model_copy(update={"run_id": run.first_execution_run_id})
        await self.asking.stand_in_line(turn)
        return run


@pytest.fixture
async def line(own_time_skipping: WorkflowEnvironment, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Line]:
    monkeypatch.setattr("workflows.merge_queue._LEASE", timedelta(seconds=3))
    monkeypatch.setattr("workflows.merge_queue._IDLE", timedelta(seconds=1))
    client = own_time_skipping.client
    waiting = Line(client)
    ORDER.clear()
    async with Worker(
        client,
        task_queue=waiting.queue,
        workflows=[MergeQueue, Waiting],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        yield waiting


async def test_first_come_first_served(line: Line) -> None:
    runs = [await line.stands(name) for name in "abcd"]
    for run in runs:
        await run.result()
    assert [each[0] for each in ORDER] == list("abcd")


async def test_who_is_gone_or_keeps_a_turn_holds_nobody_up(line: Line) -> None:
    slow = await line.stands("a", seconds=_TOO_LONG)
    gone = await line.stands("b")
    last = await line.stands("c")
    await gone.terminate()
    await asyncio.wait_for(last.result(), 300)
    assert [each[0] for each in ORDER] == ["a", "c"]
    assert (await slow.describe()).status == WorkflowExecutionStatus.RUNNING
    await slow.result()


async def test_the_line_goes_when_nobody_waits(line: Line) -> None:
    run = await line.stands("a")
    await run.result()
    await asyncio.wait_for(line.client.get_workflow_handle(queue_id("test", line.table)).result(), 300)
