"""Runs that begin to merge wait for the run with the merge slot if it met many conflicts; a lost run delays none."""

import asyncio
import threading
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import CancelledError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.approval.require_approval import ApprovalPolicy
from activities.errors import with_mapped_errors
from activities.heartbeats import uninterrupted
from activities.publishing.merge_priority import MergePriority
from activities.publishing.merge_queue import MergeQueueActivity
from activities.publishing.publish_branch import PublishBranchActivity
from sluice.contracts.merge_queue import SLOT_SIGNAL, MergeTicket
from sluice.contracts.publish import Publication, PublishBranchInput
from sluice.contracts.run_request import Policy
from sluice.publishing.certificate import approved_properties
from sluice.publishing.commit_properties import INPUT
from tests.harness.branch_run import Run
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake
from tests.harness.publish_input import publish_input
from tests.harness.waiting import LIMIT, in_time, until
from workflows.publishing import merge_queue

_AT_ONCE = LIMIT / 2
"""Seconds within which a publish without a wait ends. Here, publishes that wait take longer."""
_MANY = 4
"""Number of rebases after which the next conflict gives priority."""


@workflow.defn
class FakeRun:
    """A fake run that gets merge slots, until its test ends."""

    @workflow.init
    def __init__(self, name: str) -> None:
        self._granted: list[MergeTicket] = []

    @workflow.run
    async def run(self, name: str) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.signal(name=SLOT_SIGNAL)
    def merge_slot_free(self, ticket: MergeTicket) -> None:
        self._granted.append(ticket)

    @workflow.query
    def granted(self) -> list[MergeTicket]:
        return self._granted


class PriorityHarness:
    """Publishes of runs that write one table in memory, as workers with a Temporal server perform them."""

    def __init__(self, client: Client, lake: MemoryLake) -> None:
        self.client, self.lake, self.task_queue = client, lake, str(uuid.uuid4())
        self.installation = uuid.uuid4().hex
        self.priority = MergePriority(
            client, asyncio.get_running_loop(), self.installation, "main", longest_wait=LIMIT, rpc_timeout=60
        )

    def queue(self, target: str = "main") -> MergeQueueActivity:
        """Return the activities of the merge queues of a branch."""
        return MergeQueueActivity(self.client, self.installation, target, self.task_queue)

    async def request(self, name: str, rebases: int, table: str = "t.x", target: str = "main") -> MergeTicket:
        """Request the merge slot of a table for a run, as it does after a conflict."""
        run = await self.client.start_workflow(
            FakeRun.run,
            name,
            id=f"{name}-{self.task_queue}",
            task_queue=self.task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            execution_timeout=timedelta(seconds=2 * LIMIT),
        )
        run_id = (await run.describe()).run_id
        ticket = MergeTicket(table=table, run_id=run_id, workflow_id=run.id, rebases=rebases)
        await self.queue(target).enqueue(ticket)
        return ticket

    async def get_slot(self, name: str, rebases: int, table: str = "t.x", target: str = "main") -> MergeTicket:
        """Request the merge slot for a run, and wait until the run has it."""
        ticket = await self.request(name, rebases, table, target)
        await self.wait_for_slot(ticket)
        return ticket

    async def wait_for_slot(self, ticket: MergeTicket) -> None:
        """Wait until a run got the slot that it requested."""
        run = self.client.get_workflow_handle(ticket.workflow_id)

        async def granted() -> bool:
            return ticket in await run.query(FakeRun.granted)

        await until(granted)

    def input(self, name: str, ids: tuple[int, ...] = (1,), tables: tuple[str, ...] = ("t.x",)) -> PublishBranchInput:
        """Write as a run does; return its input of `publish_branch`."""
        run = Run(self.lake, name)
        branch, written = run.write(*ids)
        properties = {**approved_properties(run.ref, written.head, "", [], []), INPUT: name}
        return publish_input(run.ref, branch, written.head, properties, tables=tables)

    def rebased(self, input: PublishBranchInput) -> PublishBranchInput:
        """Rebase the write of a run with the merge slot onto main; return its new input of `publish_branch`."""
        run = Run(self.lake, input.run_ref.run_id)
        result = run.rebase(input.branch, run.verify(input.branch))
        assert result.branch and result.write_result
        head = result.write_result.head
        properties = {**approved_properties(run.ref, head, "", [], []), INPUT: run.ref.run_id}
        rebased = publish_input(run.ref, result.branch, head, properties, tables=input.tables)
        return rebased.model_copy(update={"has_merge_slot": True})

    @staticmethod
    def environment(**info: Any) -> ActivityEnvironment:
        """Return the environment of an activity, with the time-out of a run."""
        environment = ActivityEnvironment()
        timeout = timedelta(seconds=Policy().activity_timeout)
        environment.info = replace(environment.info, **{"start_to_close_timeout": timeout, **info})
        return environment

    def publish(
        self,
        input: PublishBranchInput,
        environment: ActivityEnvironment | None = None,
        priority: MergePriority | None = None,
    ) -> "asyncio.Future[Publication]":
        """Run the activity in a thread, where a cancellation does not interrupt it, as in a worker."""
        catalog, environment = self.lake.catalog, environment or self.environment()
        activity = PublishBranchActivity(catalog, ApprovalPolicy(catalog), priority=priority or self.priority)
        real = uninterrupted(with_mapped_errors(activity.publish_branch), time.monotonic)
        return asyncio.ensure_future(asyncio.to_thread(environment.run, real, input))

    async def publish_at_once(self, input: PublishBranchInput, *given: Any, **more: Any) -> Publication:
        """Publish without a wait for another run."""
        return await asyncio.wait_for(self.publish(input, *given, **more), _AT_ONCE)


def set_slot_timeout(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(merge_queue, "_SLOT_TIMEOUT", timedelta(seconds=seconds))


@pytest.fixture
async def harness(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PriorityHarness]:
    """Publishes that wait for priority as long as a test may last, on any slow Temporal."""
    set_slot_timeout(monkeypatch, LIMIT)
    harness = PriorityHarness(client, MemoryLake(MemoryCatalog(), tmp_path))
    async with Worker(
        client,
        task_queue=harness.task_queue,
        workflows=[merge_queue.MergeQueue, FakeRun],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        yield harness


async def test_a_run_with_many_conflicts_merges_before_a_later_one(harness: PriorityHarness) -> None:
    unlucky = harness.input("unlucky")
    assert (await harness.publish(harness.input("other", (2,)))).merged
    assert (await harness.publish(unlucky)).conflicts == ["t.x"]
    slot = await harness.get_slot("unlucky", _MANY)
    waiting = harness.publish(harness.input("later", (3,)))
    rebased = harness.rebased(unlucky)
    await asyncio.sleep(1)
    assert not waiting.done() and harness.lake.ids("t.x") == [2]
    assert (await in_time(harness.publish(rebased))).merged, "a run with the slot does not wait"
    await harness.queue().release_merge_slot(slot)
    assert (await in_time(waiting)).conflicts == ["t.x"]
    assert harness.lake.ids("t.x") == [1, 2]


async def test_a_run_with_few_conflicts_has_no_priority(harness: PriorityHarness) -> None:
    await harness.get_slot("r1", _MANY - 1)
    assert (await harness.publish_at_once(harness.input("r2"))).merged


async def test_a_run_gets_priority_while_it_has_the_slot(harness: PriorityHarness) -> None:
    await harness.get_slot("r1", _MANY - 1)
    slot = await harness.get_slot("r1", _MANY)
    waiting = harness.publish(harness.input("r2"))
    await asyncio.sleep(1)
    assert not waiting.done()
    await harness.queue().release_merge_slot(slot)
    assert (await in_time(waiting)).merged


async def test_priority_ends_with_the_slot(harness: PriorityHarness) -> None:
    first, second = await harness.get_slot("first", _MANY), await harness.request("second", 1)
    await harness.queue().release_merge_slot(first)
    await harness.wait_for_slot(second)
    assert (await harness.publish_at_once(harness.input("r3"))).merged


async def test_the_priority_of_a_lost_run_ends(harness: PriorityHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    set_slot_timeout(monkeypatch, 2)
    await harness.get_slot("lost", _MANY)
    assert (await harness.publish_at_once(harness.input("r2"))).merged


async def test_other_tables_and_branches_do_not_wait(harness: PriorityHarness) -> None:
    await harness.get_slot("r1", _MANY, table="t.y")
    await harness.get_slot("r2", _MANY, target="backfill/p/1")
    assert (await harness.publish_at_once(harness.input("r3"))).merged


async def test_nobody_waits_longer_than_the_limit_for_all_tables(harness: PriorityHarness) -> None:
    for table in ("t.x", "t.y", "t.z"):
        await harness.get_slot(f"lost-{table}", _MANY, table=table)
    waiting, priority = harness.input("r2", tables=("t.x", "t.y", "t.z")), replace(harness.priority, longest_wait=4)
    began = time.monotonic()
    assert (await in_time(harness.publish(waiting, priority=priority))).merged
    assert 4 <= time.monotonic() - began < 3 * 4


@pytest.mark.parametrize("info", [{"attempt": 2}, {"start_to_close_timeout": timedelta(seconds=3)}])
async def test_a_try_waits_once_and_for_a_part_of_its_time(harness: PriorityHarness, info: dict[str, Any]) -> None:
    await harness.get_slot("lost", _MANY)
    assert (await harness.publish_at_once(harness.input("r2"), harness.environment(**info))).merged


async def test_few_runs_of_a_worker_wait(harness: PriorityHarness) -> None:
    priority = replace(harness.priority, slots=threading.BoundedSemaphore(1))
    slot = await harness.get_slot("first", _MANY)
    waiting = harness.publish(harness.input("r2", (2,)), priority=priority)
    await until(lambda: not priority.slots._value)
    assert (await harness.publish_at_once(harness.input("r3", (3,)), priority=priority)).merged
    assert not waiting.done()
    await harness.queue().release_merge_slot(slot)
    assert (await in_time(waiting)).conflicts == ["t.x"]


async def test_a_cancel_during_the_wait_is_not_lost(harness: PriorityHarness) -> None:
    await harness.get_slot("first", _MANY)
    environment = harness.environment()
    waiting = harness.publish(harness.input("r2"), environment)
    await asyncio.sleep(0.5)
    environment.cancel()
    with pytest.raises(CancelledError):
        await asyncio.wait_for(waiting, _AT_ONCE)
    assert harness.lake.catalog.table_version("main", "t.x") is None


@dataclass(frozen=True)
class SlowPriority(MergePriority):
    """Merge priority whose question to Temporal takes until the test answers it."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    answer: "asyncio.Future[bool]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    async def _read_priority(self, table: str) -> bool:
        self.asked.set()
        return await self.answer


@pytest.mark.parametrize("answer", [True, False])
async def test_a_cancel_during_a_question_is_not_lost(answer: bool, harness: PriorityHarness) -> None:
    environment = harness.environment()
    loop = asyncio.get_running_loop()
    priority = SlowPriority(harness.client, loop, harness.installation, "main", longest_wait=LIMIT, rpc_timeout=LIMIT)
    waiting = harness.publish(harness.input("r1"), environment, priority)
    await in_time(priority.asked.wait())
    environment.cancel()
    priority.answer.set_result(answer)
    with pytest.raises(CancelledError):
        await asyncio.wait_for(waiting, _AT_ONCE)
    assert harness.lake.catalog.table_version("main", "t.x") is None


@dataclass(frozen=True)
class Unanswered(MergePriority):
    """Merge priority when Temporal answers with an error, or not at all."""

    error: Exception | None = None

    async def _read_priority(self, table: str) -> bool:
        if self.error:
            raise self.error
        await asyncio.sleep(600)
        return True


@pytest.mark.parametrize(
    "error", [RPCError("busy", RPCStatusCode.RESOURCE_EXHAUSTED, b""), ValueError("a codec"), None]
)
async def test_a_run_is_published_when_temporal_does_not_answer(
    error: Exception | None, harness: PriorityHarness, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.get_running_loop()
    priority = Unanswered(harness.client, loop, harness.installation, "main", rpc_timeout=0.2, error=error)
    assert (await harness.publish_at_once(harness.input("r1"), priority=priority)).merged
    assert caplog.text.count("merge priority could not be read") == 1


async def test_a_run_is_published_when_the_worker_ends(harness: PriorityHarness) -> None:
    closed = asyncio.new_event_loop()
    closed.close()
    assert (await harness.publish_at_once(harness.input("r1"), priority=replace(harness.priority, loop=closed))).merged
