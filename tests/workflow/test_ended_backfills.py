"""Backfills that are cancelled or ended by force, and starts that somebody ended by force."""

import asyncio

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowUpdateFailedError

from runtime.run.started_runs import cancel_start
from sluice.backfills.progress import count_states, partition_states
from sluice.contracts.backfill import AddPartitions, JointPublish, PartitionState
from sluice.contracts.starting import EndedRun
from tests.harness.backfill_workflow import (
    OPEN,
    REFUSED,
    SINCE,
    SLOW_TO_CANCEL,
    STARTS,
    WITH_RUN,
    Backfills,
    cancel_and_terminate,
    pipeline,
    until_cancel_requested,
    until_it_runs,
)
from tests.harness.waiting import in_time, until
from workflows.backfills.backfill import Backfill


async def test_a_cancel_ends_what_runs_and_starts_nothing_more(backfills: Backfills) -> None:
    handle = await backfills.start(5, window=2)
    await backfills.wait(lambda status: len(status.children) == 2)
    await backfills.end("p0")
    await backfills.wait(lambda status: list(status.children) == ["p1", "p2"])
    await asyncio.sleep(0.5)
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    states = partition_states((await backfills.status()).progress)
    assert list(states.values()) == ["published", *["cancelled"] * 4]
    assert OPEN[backfills.queue] == 0 and STARTS[backfills.queue] == ["p0", "p1", "p2"]


@pytest.mark.parametrize(("has_published", "state"), [(False, "cancelled"), (True, "published")])
async def test_a_cancel_ends_the_run_of_a_start_that_was_ended_by_force(
    backfills: Backfills, has_published: bool, state: PartitionState
) -> None:
    """It would publish after the backfill was cancelled. If it has published already, its partition is `published`."""
    handle = await backfills.start(2, WITH_RUN, window=1, starts_per_run=1)
    await backfills.wait(lambda status: len(status.children) == 1)
    child = await backfills.child("p0")
    run = backfills.client.get_workflow_handle(f"{child.id}-run")
    await until_it_runs(run)
    while (await backfills.handle().describe()).run_id == handle.first_execution_run_id:
        await asyncio.sleep(0.1)  # the next run of the workflow does not see the child's end
    await child.terminate("killed")
    if has_published:
        await run.signal("publish")
        await run.result()
    await backfills.handle().cancel()
    with pytest.raises(WorkflowFailureError):
        await in_time(handle.result())
    ended = WorkflowExecutionStatus.COMPLETED if has_published else WorkflowExecutionStatus.CANCELED
    assert (await run.describe()).status == ended
    assert partition_states((await backfills.status()).progress) == {"p0": state, "p1": "cancelled"}


async def test_a_cancel_waits_for_no_start_that_is_ended_by_force_meanwhile(backfills: Backfills) -> None:
    handle = await backfills.start(1, SLOW_TO_CANCEL)
    await backfills.wait(lambda status: len(status.children) == 1)
    child = await backfills.child("p0")
    await cancel_and_terminate(handle, child)


async def test_what_a_terminated_backfill_left_is_cancelled_once(backfills: Backfills) -> None:
    """A running start cancels its own run. If the start was terminated too, the run itself is cancelled."""
    await backfills.start(1, WITH_RUN)
    await backfills.wait(lambda status: len(status.children) == 1)
    child = await backfills.child("p0")
    run = backfills.client.get_workflow_handle(f"{child.id}-run")
    await until_it_runs(run)
    await backfills.handle().terminate("killed")
    await child.terminate("killed")

    async def is_cancelled() -> bool:
        return await cancel_start(backfills.client, child.id) == [run.id]

    async def is_done() -> bool:
        return await cancel_start(backfills.client, child.id) == []

    await until(is_cancelled)  # once Temporal lists the running workflows
    with pytest.raises(WorkflowFailureError):
        await run.result()
    await until(is_done)
    await backfills.start(1, again=True)
    await backfills.wait(lambda status: len(status.children) == 1)
    running = await backfills.child("p0")
    assert await cancel_start(backfills.client, running.id) == [running.id]


async def test_nothing_is_added_to_one_that_was_cancelled(backfills: Backfills) -> None:
    handle = await backfills.start(2, SLOW_TO_CANCEL, window=1)
    await backfills.wait(lambda status: len(status.children) == 1)
    child = await backfills.child("p0")
    await child.query("__stack_trace")
    await handle.cancel()
    await until_cancel_requested(child)
    added = AddPartitions(pipeline=pipeline(SLOW_TO_CANCEL), partitions=["p1", "p2"])
    for refused in (
        handle.execute_update(Backfill.add, added),
        backfills.change("retry"),
    ):
        with pytest.raises(WorkflowUpdateFailedError) as error:
            await refused
        assert "was cancelled" in str(error.value.cause)
    await backfills.end("p0", "cancelled")
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    assert count_states((await backfills.status()).progress) == {"cancelled": 2}


async def test_one_that_was_ended_by_force_is_started_again_and_attaches(backfills: Backfills) -> None:
    await backfills.start(2, window=2)
    first = (await backfills.wait(lambda status: len(status.children) == 2)).children
    for name in first:
        await (await backfills.child(name)).query("__stack_trace")  # both run
    await backfills.handle().terminate("killed")
    handle = await backfills.start(3, window=3)
    again = (await backfills.wait(lambda status: len(status.children) == 3)).children
    assert again.items() >= first.items()
    for name in again:
        await backfills.end(name)
    assert count_states((await handle.result()).progress) == {"published": 3}
    assert sorted(STARTS[backfills.queue]) == ["p0", "p1", "p2"], "none was started twice"


async def test_it_takes_no_report_of_a_start_that_publishes_to_another_branch(backfills: Backfills) -> None:
    """Its partition would count as published, although main lacks it."""
    branch = JointPublish(branch="sluice/backfill/here/p", catalog_id="catalog")
    await backfills.start(1, together=branch)
    await backfills.wait(lambda status: len(status.children) == 1)
    of_branch = await backfills.child("p0")
    await backfills.handle().terminate("killed")
    handle = await backfills.start(1)
    await backfills.wait(lambda status: len(status.children) == 1)
    of_main = await backfills.child("p0")
    assert of_main.id != of_branch.id
    await of_branch.signal("end", EndedRun(outcome="published"))
    await of_branch.result()
    assert await backfills.running() == ["p0"]
    await backfills.end("p0", "failed", "error")
    assert count_states((await handle.result()).progress) == {"failed": 1}


async def test_a_start_that_is_ended_by_force_is_begun_again(backfills: Backfills) -> None:
    handle = await backfills.start(2, window=1, stop_after=1)
    await backfills.wait(lambda status: len(status.children) == 1)
    child = await backfills.child("p0")
    await child.query("__stack_trace")
    await child.terminate("killed")
    await until(lambda: len(STARTS[backfills.queue]) == 2)
    await backfills.end("p0", "failed", "error")
    await backfills.change("retry")
    for name in ("p0", "p1"):
        await backfills.wait(lambda status, name=name: name in status.children)  # type: ignore[misc]
        await backfills.end(name)
    assert count_states((await handle.result()).progress) == {"published": 2}
    assert STARTS[backfills.queue] == ["p0", "p0", "p0", "p1"]
    first, again, retried, _ = SINCE[backfills.queue]
    assert first == again < retried, "a start that is lost is the same request, and a retry is another one"


async def test_a_start_that_the_worker_refuses_fails_its_partition_once_with_the_reason(backfills: Backfills) -> None:
    """It was started again without end."""
    handle = await backfills.start(2, REFUSED, window=1)
    progress = (await in_time(handle.result())).progress
    assert list(partition_states(progress).values()) == ["failed", "failed"]
    assert [progress.notes[name].reason for name in ("p0", "p1")] == [REFUSED, REFUSED]
    assert STARTS[backfills.queue] == ["p0", "p1"]
