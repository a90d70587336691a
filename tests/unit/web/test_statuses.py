"""Statuses of runs: a worker is queried once for all readers, and again only after the history of the run has grown."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from runtime.run.find_run import RunLookup
from sluice.contracts.run import RunResult, RunStatus, Stage
from tests.harness.waiting import in_time
from web.run import statuses
from web.run.statuses import Statuses

SOON = 0.05
"""Time within which a worker of these tests answers, in seconds, if it answers at all."""


class Run:
    """A run whose worker counts the queries."""

    def __init__(self, run_id: str = "r") -> None:
        self.run_id, self.queries, self.events = run_id, 0, 5
        self.ended = False
        self.stage: Stage = "writing"
        self.worker: asyncio.Event | None = None
        """Set when the worker answers; None if it answers at once."""
        self.error: Exception | None = None

    async def query(self, *_: object, **__: object) -> RunStatus:
        self.queries += 1
        if self.worker:
            await self.worker.wait()
        if self.error:
            raise self.error
        result = RunResult(run_id=self.run_id, workflow_id="p-0123456789ab", pipeline="p")
        return RunStatus(stage=self.stage, events=[], result=result)

    @property
    def lookup(self) -> RunLookup:
        status = WorkflowExecutionStatus.COMPLETED if self.ended else WorkflowExecutionStatus.RUNNING
        described = SimpleNamespace(run_id=self.run_id, history_length=self.events, status=status)
        return RunLookup(cast(Any, SimpleNamespace(query=self.query)), cast(Any, described))


async def test_a_status_is_read_again_only_when_the_history_has_grown() -> None:
    run, read = Run(), Statuses(60).read
    for events, queries in ((5, 1), (5, 1), (8, 2), (8, 2)):
        run.events = events
        assert await read(run.lookup)
        assert run.queries == queries
    assert await read(Run("other").lookup)


async def test_a_list_does_not_query_a_busy_run_at_each_of_its_steps() -> None:
    run, read = Run(), Statuses(60).read
    await read(run.lookup, 60)
    run.events += 3
    assert await read(run.lookup, 60) and run.queries == 1
    assert await read(run.lookup) and run.queries == 2, "its own page shows the present stage"
    run.stage = "waiting for approval"
    run.events += 3
    assert await read(run.lookup) and run.queries == 3
    run.events += 3
    assert await read(run.lookup, 60) and run.queries == 4, "somebody may have decided"
    run.stage, run.ended = "ended", True
    run.events += 3
    ended = await read(run.lookup, 60)
    assert ended and ended.stage == "ended"


async def test_a_length_that_is_not_known_proves_nothing() -> None:
    run, read = Run(), Statuses(60).read
    run.events = 0
    await read(run.lookup)
    await read(run.lookup)
    assert run.queries == 2


async def test_readers_at_the_same_time_share_one_query() -> None:
    run, read = Run(), Statuses(60).read
    run.worker = asyncio.Event()
    readers = [asyncio.create_task(read(run.lookup)) for _ in range(100)]
    await asyncio.sleep(0)
    readers.pop().cancel()
    await asyncio.sleep(0)
    run.worker.set()
    assert all(await in_time(asyncio.gather(*readers))), "a reader that leaves does not disturb the others"
    assert run.queries == 1


async def test_a_reader_after_a_decision_does_not_get_a_status_from_before_it() -> None:
    run, read = Run(), Statuses(60).read
    run.worker = asyncio.Event()
    early = asyncio.create_task(read(run.lookup))
    await asyncio.sleep(0)
    run.events += 3
    late = asyncio.create_task(read(run.lookup))
    await asyncio.sleep(0)
    run.worker.set()
    assert all(await in_time(asyncio.gather(early, late))) and run.queries == 2


@pytest.mark.parametrize("error", [RPCError("no worker", RPCStatusCode.UNAVAILABLE, b""), ValueError("another key")])
async def test_a_missing_answer_is_not_kept(error: Exception) -> None:
    run, read = Run(), Statuses(60).read
    run.error = error
    assert await read(run.lookup) is None
    run.error = None
    assert await read(run.lookup)


async def test_a_worker_that_hangs_is_not_waited_for() -> None:
    run, read = Run(), Statuses(SOON).read
    run.worker = asyncio.Event()
    assert await in_time(read(run.lookup)) is None
    run.worker.set()
    assert await read(run.lookup)


async def test_a_page_learns_that_the_worker_of_an_unchanged_run_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    run, ended, read = Run(), Run("ended"), Statuses(60).read
    ended.ended = True
    assert await read(run.lookup) and await read(ended.lookup)
    monkeypatch.setattr(statuses, "_FRESH", 0.0)
    run.error = ended.error = RPCError("no worker", RPCStatusCode.UNAVAILABLE, b"")
    assert await read(run.lookup) is None
    assert await read(ended.lookup), "nothing about an ended run changes"


async def test_no_more_than_a_thousand_statuses_are_kept() -> None:
    first, read = Run("first"), Statuses(60)
    await read.read(first.lookup)
    for number in range(1000):
        await read.read(Run(f"{number}").lookup)
    await read.read(first.lookup)
    assert first.queries == 2 and len(read._readings) == 1000
