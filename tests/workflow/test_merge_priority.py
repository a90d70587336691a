"""A run that met many conflicts merges before runs that just begin to merge. A lost run delays no other."""

import asyncio
import threading
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.exceptions import CancelledError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.approval.require_approval import ApprovalPolicy
from activities.errors import with_mapped_errors
from activities.publishing import merge_priority as priority_activities
from activities.publishing.merge_priority import MergePriority
from activities.publishing.publish_branch import PublishBranchActivity
from sluice.contracts.merge_queue import priority_id
from sluice.contracts.publish import Publication, PublishBranchInput
from sluice.contracts.run import Policy
from sluice.publishing.certificate import approved_properties
from sluice.publishing.commit_properties import INPUT
from tests.harness.branch_run import Run
from tests.harness.memory_catalog import MemoryCatalog
from tests.harness.memory_lake import MemoryLake
from tests.harness.waiting import LIMIT, in_time, until
from workflows.publishing import merge_priority

_AT_ONCE = LIMIT / 2
"""Seconds within which a publish without a wait ends. Here, publishes that wait take longer."""
_MANY = 4
"""Number of rebases after which the next conflict claims priority."""
_MOVED = Publication(merged=False, conflicts=["t.x"])
_MERGED = Publication(merged=True)


class PriorityHarness:
    """Publishes of runs that write one table in memory, as workers with a Temporal server perform them."""

    def __init__(self, client: Client, lake: MemoryLake) -> None:
        self.client, self.lake, self.task_queue = client, lake, str(uuid.uuid4())
        self.installation = uuid.uuid4().hex
        self.priority = self.at("main")

    def at(self, target: str) -> MergePriority:
        """Return the priority of runs that publish to a branch."""
        return MergePriority(self.client, asyncio.get_running_loop(), self.installation, target, self.task_queue)

    def input(self, name: str, rebases: int = 0, ids: tuple[int, ...] = (1,)) -> PublishBranchInput:
        """Write as a run does; return its input of `publish_branch`."""
        run = Run(self.lake, name)
        branch, written = run.write(*ids)
        return PublishBranchInput(
            run_ref=run.ref,
            branch=branch,
            head=written.head,
            message="m",
            author="ana",
            properties={**approved_properties(run.ref, written.head, "", [], []), INPUT: name},
            tables=["t.x"],
            rebases=rebases,
        )

    def rebased(self, input: PublishBranchInput) -> PublishBranchInput:
        """Rebase a run's write onto main; return its new input of `publish_branch`."""
        run = Run(self.lake, input.run_ref.run_id)
        result = run.rebase(input.branch, run.verify(input.branch))
        assert result.branch and result.write_result
        properties = approved_properties(run.ref, result.write_result.head, "", [], [])
        return input.model_copy(
            update={
                "run_ref": run.ref,
                "branch": result.branch,
                "head": result.write_result.head,
                "properties": {**properties, INPUT: run.ref.run_id},
                "rebases": input.rebases + 1,
            }
        )

    @staticmethod
    def environment(**info: Any) -> ActivityEnvironment:
        """Return the environment of an activity, with the time-out of a run."""
        environment = ActivityEnvironment()
        timeout = timedelta(seconds=Policy().activity_timeout)
        environment.info = replace(environment.info, **{"start_to_close_timeout": timeout, **info})
        return environment

    def publish(
        self, input: PublishBranchInput, environment: ActivityEnvironment | None = None
    ) -> "asyncio.Future[Publication]":
        """Run the activity in a thread."""
        catalog, environment = self.lake.catalog, environment or self.environment()
        real = PublishBranchActivity(catalog, ApprovalPolicy(catalog), priority=self.priority).publish_branch
        return asyncio.ensure_future(asyncio.to_thread(environment.run, with_mapped_errors(real), input))

    async def update(self, input: PublishBranchInput, publication: Publication) -> None:
        """Report how a publish ended."""
        await asyncio.to_thread(self.priority.update, input, publication)

    async def claims(self, table: str = "t.x", target: str = "main") -> int:
        """Return the number of claims that the run with priority has made; 0 if no run has priority."""
        claim = self.client.get_workflow_handle(priority_id(self.installation, target, table))
        try:
            if (await claim.describe()).status != WorkflowExecutionStatus.RUNNING:
                return 0
        except RPCError as error:
            assert error.status == RPCStatusCode.NOT_FOUND
            return 0
        events = (await claim.fetch_history()).events
        return sum(event.HasField("workflow_execution_signaled_event_attributes") for event in events)

    async def wait_until_released(self, table: str = "t.x") -> None:
        """Wait until no run has priority."""

        async def released() -> bool:
            return not await self.claims(table)

        await until(released)


@pytest.fixture
async def harness(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PriorityHarness]:
    """Publishes that wait for priority as long as a test may last, on any slow Temporal."""
    monkeypatch.setattr(merge_priority, "_CLAIM_TIME", timedelta(seconds=LIMIT))
    monkeypatch.setattr(merge_priority, "_LONGEST", timedelta(seconds=LIMIT))
    monkeypatch.setattr(priority_activities, "_LONGEST_WAIT", LIMIT)
    monkeypatch.setattr(priority_activities, "_RPC_TIMEOUT", timedelta(seconds=60))
    harness = PriorityHarness(client, MemoryLake(MemoryCatalog(), tmp_path))
    async with Worker(
        client,
        task_queue=harness.task_queue,
        workflows=[merge_priority.MergePriority],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        yield harness


async def test_a_run_with_many_conflicts_merges_before_a_later_one(harness: PriorityHarness) -> None:
    unlucky = harness.input("unlucky", _MANY)
    assert (await harness.publish(harness.input("other", ids=(2,)))).merged
    assert (await harness.publish(unlucky)).conflicts == ["t.x"] and await harness.claims() == 1
    waiting = harness.publish(harness.input("later", ids=(3,)))
    rebased = harness.rebased(unlucky)
    await asyncio.sleep(1)
    assert not waiting.done() and harness.lake.ids("t.x") == [2]
    assert (await in_time(harness.publish(rebased))).merged
    assert (await in_time(waiting)).conflicts == ["t.x"]
    assert harness.lake.ids("t.x") == [1, 2]
    await harness.wait_until_released()


async def test_few_rebases_claim_nothing(harness: PriorityHarness) -> None:
    await harness.update(harness.input("r1", _MANY - 1), _MOVED)
    assert not await harness.claims()


async def test_other_tables_and_branches_do_not_wait(harness: PriorityHarness) -> None:
    input = harness.input("r1", _MANY)
    await harness.update(input, Publication(merged=False, conflicts=["t.y"]))
    await asyncio.to_thread(harness.at("backfill/p/1").update, input, _MOVED)
    assert await harness.claims("t.y") and await harness.claims(target="backfill/p/1")
    assert (await asyncio.wait_for(harness.publish(harness.input("r2", ids=(2,))), _AT_ONCE)).merged


async def test_a_run_that_may_hold_a_slot_of_the_merge_queue_does_not_wait(harness: PriorityHarness) -> None:
    await harness.update(harness.input("first", _MANY), _MOVED)
    assert (await asyncio.wait_for(harness.publish(harness.input("r2", 2, ids=(2,))), _AT_ONCE)).merged
    assert await harness.claims()


async def test_only_the_run_that_has_priority_keeps_and_releases_it(
    harness: PriorityHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_priority, "_CLAIM_TIME", timedelta(seconds=6))
    first, second = harness.input("first", _MANY), harness.input("second", _MANY, ids=(2,))
    began = time.monotonic()
    for number in range(2):
        await harness.update(first, _MOVED)
        await asyncio.sleep(2)
        await harness.update(second, _MERGED)
        assert await harness.claims() > number
    for _ in range(3):
        await harness.update(second, _MOVED)
    await harness.wait_until_released()  # without a message: the run that claimed it may be lost
    assert time.monotonic() - began > 7
    await harness.update(first.model_copy(update={"watched_tables": ["t.y"]}), _MERGED)
    await harness.update(second, _MOVED)
    await harness.update(second, Publication(merged=False, conflicts=["t.y"]))
    await harness.update(second.model_copy(update={"watched_tables": ["t.y"]}), _MERGED)
    for table in ("t.x", "t.y"):
        await harness.wait_until_released(table)


async def test_claims_that_follow_each_other_end(harness: PriorityHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_priority, "_LONGEST", timedelta(seconds=2))
    await harness.update(harness.input("first", _MANY), _MOVED)
    began = time.monotonic()
    await harness.wait_until_released()
    assert time.monotonic() - began < _AT_ONCE  # and not after the time of the claim


async def test_nobody_waits_longer_than_the_limit_for_all_tables(
    harness: PriorityHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(priority_activities, "_LONGEST_WAIT", 4.0)
    lost = harness.input("lost", _MANY)
    await harness.update(lost, Publication(merged=False, conflicts=["t.x", "t.y", "t.z"]))
    waiting = harness.input("r2", ids=(2,)).model_copy(update={"tables": ["t.x", "t.y", "t.z"]})
    began = time.monotonic()
    assert (await in_time(harness.publish(waiting))).merged
    assert 4 <= time.monotonic() - began < 3 * 4 and await harness.claims()


@pytest.mark.parametrize("info", [{"attempt": 2}, {"start_to_close_timeout": timedelta(seconds=3)}])
async def test_a_try_waits_once_and_for_a_part_of_its_time(harness: PriorityHarness, info: dict[str, Any]) -> None:
    await harness.update(harness.input("lost", _MANY), _MOVED)
    waiting = harness.publish(harness.input("r2", ids=(2,)), harness.environment(**info))
    assert (await asyncio.wait_for(waiting, _AT_ONCE)).merged and await harness.claims()


async def test_few_runs_of_a_worker_wait(harness: PriorityHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(priority_activities, "_waiting", threading.BoundedSemaphore(1))
    await harness.update(harness.input("first", _MANY), _MOVED)
    waiting = harness.publish(harness.input("r2", ids=(2,)))
    await until(lambda: not priority_activities._waiting._value)
    assert (await asyncio.wait_for(harness.publish(harness.input("r3", ids=(3,))), _AT_ONCE)).merged
    assert not waiting.done()
    await harness.update(harness.input("first", _MANY), _MERGED)
    assert (await in_time(waiting)).conflicts == ["t.x"]


async def test_a_cancel_during_the_wait_is_not_lost(harness: PriorityHarness) -> None:
    await harness.update(harness.input("first", _MANY), _MOVED)
    environment = harness.environment()
    waiting = harness.publish(harness.input("r2", ids=(2,)), environment)
    await asyncio.sleep(0.5)
    environment.cancel()
    with pytest.raises(CancelledError):
        await asyncio.wait_for(waiting, _AT_ONCE)
    assert harness.lake.catalog.table_version("main", "t.x") is None


@pytest.mark.parametrize("error", [RPCError("busy", RPCStatusCode.RESOURCE_EXHAUSTED, b""), ValueError("a codec")])
async def test_a_run_is_published_when_temporal_does_not_answer(
    error: Exception, harness: PriorityHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(MergePriority, "_is_claimed", refuse)
    monkeypatch.setattr(MergePriority, "_release", refuse)
    assert (await harness.publish(harness.input("r1"))).merged
    await harness.update(harness.input("r2", _MANY, ids=(2,)), _MERGED)
    assert caplog.text.count("merge priority could not be read or changed") == 2


async def test_a_run_is_published_when_temporal_is_silent_or_the_worker_ends(
    harness: PriorityHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def be_silent(*_: Any) -> bool:
        await asyncio.sleep(600)
        return True

    monkeypatch.setattr(MergePriority, "_is_claimed", be_silent)
    monkeypatch.setattr(priority_activities, "_RPC_TIMEOUT", timedelta(seconds=0.2))
    assert (await asyncio.wait_for(harness.publish(harness.input("r1")), _AT_ONCE)).merged
    closed = asyncio.new_event_loop()
    closed.close()
    harness.priority = MergePriority(harness.client, closed, "i", "main", "q")
    later = harness.input("r2", ids=(2,))
    assert (await asyncio.wait_for(harness.publish(later), _AT_ONCE)).merged
