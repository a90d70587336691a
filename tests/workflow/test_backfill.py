"""Backfills: the window, pause and resume, the stop rule, additions, and short histories."""

import asyncio
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.worker import Replayer

from runtime.backfills.backfills import read_backfill
from sluice.backfills.progress import count_states, partition_states
from sluice.contracts.backfill import AddPartitions
from tests.harness.backfill_workflow import AT_ONCE, HELD, MOST, SETTINGS, STARTS, Backfills, pipeline
from tests.harness.waiting import until
from workflows.backfills.backfill import Backfill
from workflows.sandbox import sandbox


async def test_where_order_matters_nothing_overtakes_a_partition_that_failed(backfills: Backfills) -> None:
    handle = await backfills.start(3, window=1, in_order=True, stop_after=0)
    await backfills.wait(lambda status: list(status.children) == ["p0"])
    for change, problem in (({"action": "window", "window": 2}, "one at a time"), ({"action": "resume"}, "")):
        if problem:
            with pytest.raises(WorkflowUpdateFailedError) as refused:
                await backfills.change(**change)
            assert problem in str(refused.value.cause)
        else:
            await backfills.change(**change)
    await backfills.end("p0", "quarantined", "audit")
    status = await backfills.wait(lambda status: bool(status.progress.paused))
    assert "p0 is kept out" in status.progress.paused and not status.children
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await backfills.change("resume")
    assert "`backfill retry` begins it again" in str(refused.value.cause)
    await backfills.change("retry")
    for partition in ("p0", "p1", "p2"):
        await backfills.wait(lambda status: bool(status.children))
        assert await backfills.running() == [partition]
        await backfills.end(partition)
    assert count_states((await handle.result()).progress) == {"published": 3}
    assert STARTS[backfills.queue] == ["p0", "p0", "p1", "p2"] and MOST[backfills.queue] == 1


async def test_the_window_is_kept_and_can_be_changed(backfills: Backfills) -> None:
    handle = await backfills.start(5, window=2)
    await backfills.wait(lambda status: len(status.children) == 2)
    await backfills.end("p1")
    assert await backfills.running() == ["p0", "p2"]
    status = await backfills.change("window", window=3)
    assert status.progress.window == 3
    await backfills.wait(lambda status: list(status.children) == ["p0", "p2", "p3"])
    await (await backfills.child("p3")).query("__stack_trace")  # its child runs; the backfill counted it before
    for name in ("p0", "p2", "p3", "p4"):
        await backfills.wait(lambda status, name=name: name in status.children)  # type: ignore[misc]
        await backfills.end(name)
    ended = await handle.result()
    assert set(partition_states(ended.progress).values()) == {"published"}
    assert MOST[backfills.queue] == 3 and STARTS[backfills.queue] == [f"p{number}" for number in range(5)]


async def test_pause_and_resume_with_a_note(backfills: Backfills) -> None:
    await backfills.start(3, window=1)
    await backfills.wait(lambda status: list(status.children) == ["p0"])
    paused = await backfills.change("pause", reason="the source is being repaired")
    assert paused.progress.paused == "by ada: the source is being repaired"
    assert (await backfills.change("pause")).progress.paused == paused.progress.paused, "the reason is kept"
    await backfills.end("p0")
    assert await backfills.running() == []
    await backfills.change("resume")
    await backfills.wait(lambda status: list(status.children) == ["p1"])
    child = await backfills.child("p1")
    await backfills.handle().terminate()
    await child.terminate()


async def test_failures_pause_it_and_a_retry_begins_them_again(backfills: Backfills) -> None:
    handle = await backfills.start(4, window=1, stop_after=2)
    for name, ended in (("p0", ("quarantined", "audit")), ("p1", ("refused", None))):
        await backfills.wait(lambda status, name=name: name in status.children)  # type: ignore[misc]
        await backfills.end(name, *ended)
    status = await backfills.status()
    assert "2 of its partitions failed or were kept out" in status.progress.paused and status.children == {}
    assert partition_states(status.progress)["p0"] == "kept out"
    await backfills.change("retry")
    for name in ("p0", "p1", "p2", "p3"):
        await backfills.wait(lambda status, name=name: name in status.children)  # type: ignore[misc]
        await backfills.end(name)
    assert count_states((await handle.result()).progress) == {"published": 4}


async def test_a_start_while_one_runs_adds_partitions_and_another_text_waits_for_what_runs(
    backfills: Backfills,
) -> None:
    handle = await backfills.start(2, window=1, stop_after=1)
    await backfills.wait(lambda status: list(status.children) == ["p0"])
    repaired = AddPartitions(pipeline=pipeline(AT_ONCE), partitions=["p0", "p1", "p9"])
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update(Backfill.add, repaired)
    assert "another version of the pipeline" in str(refused.value.cause)
    added = AddPartitions(pipeline=pipeline(HELD), partitions=["p0", "p8"])
    status = await handle.execute_update(Backfill.add, added)
    assert list(partition_states(status.progress)) == ["p0", "p1", "p8"] and list(status.children) == ["p0"]
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update(Backfill.add, added.model_copy(update={"again": True}))
    assert "--again" in str(refused.value.cause)
    await backfills.end("p0", "failed", "error")
    assert (await backfills.status()).progress.paused
    too_many = repaired.model_copy(update={"partitions": [f"q{number}" for number in range(10_000)]})
    with pytest.raises(WorkflowUpdateFailedError):
        await handle.execute_update(Backfill.add, too_many)
    await backfills.change("resume")
    await backfills.wait(lambda status: list(status.children) == ["p1"])
    await backfills.end("p1", "failed", "error")  # the refused text would end by itself
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update(Backfill.add, repaired)
    assert "has 1 more partition that would run with it, p8 for example" in str(refused.value.cause)
    repaired = repaired.model_copy(update={"partitions": ["p0", "p1", "p8", "p9"]})
    await handle.execute_update(Backfill.add, repaired)
    assert partition_states((await handle.result()).progress) == dict.fromkeys(("p0", "p1", "p8", "p9"), "published")


async def test_it_continues_as_new_with_what_runs(backfills: Backfills) -> None:
    handle = await backfills.start(7, window=3, starts_per_run=2)
    held: list[str] = []
    for number in (1, 0, 2, 3, 4, 5, 6):
        name = f"p{number}"
        await backfills.wait(lambda status, name=name: name in status.children)  # type: ignore[misc]
        held.append(name)
        await backfills.end(name)
    assert count_states((await handle.result()).progress) == {"published": 7}
    assert sorted(STARTS[backfills.queue]) == sorted(held) and MOST[backfills.queue] == 3
    runs = [each async for each in backfills.client.list_workflows(f'WorkflowId = "{backfills.id}"')]
    assert len(runs) >= 4
    replayer = Replayer(workflows=[Backfill], workflow_runner=sandbox(), data_converter=backfills.client.data_converter)
    for run in runs:  # as another worker replays after a kill
        history = await backfills.client.get_workflow_handle(backfills.id, run_id=run.run_id).fetch_history()
        await replayer.replay_workflow(history)


async def test_a_start_that_is_lost_after_it_continued_as_new_is_begun_again(backfills: Backfills) -> None:
    handle = await backfills.start(2, window=2, starts_per_run=2, ask_again=2)
    children = (await backfills.wait(lambda status: len(status.children) == 2)).children
    for name in children:
        await (await backfills.child(name)).query("__stack_trace")
    assert (await handle.describe()).run_id != handle.first_execution_run_id, "it continued as new"
    await backfills.client.get_workflow_handle(children["p1"]).terminate("killed")
    await until(lambda: len(STARTS[backfills.queue]) == 3)
    await backfills.end("p0")
    await backfills.end("p1")
    assert count_states((await handle.result()).progress) == {"published": 2}
    assert STARTS[backfills.queue] == ["p0", "p1", "p1"], "the one that runs is left alone"


@pytest.mark.parametrize(
    ("count", "starts_per_run"),
    [pytest.param(60, 20, marks=pytest.mark.slow), pytest.param(1000, 200, marks=pytest.mark.matrix)],
)
async def test_many_partitions_have_short_histories(backfills: Backfills, count: int, starts_per_run: int) -> None:
    handle = await backfills.start(count, AT_ONCE, starts_per_run, window=20)
    ended = await handle.result()
    assert count_states(ended.progress) == {"published": count} and ended.progress.rows_added == count
    assert MOST[backfills.queue] <= 20 and set(STARTS[backfills.queue]) == set(ended.progress.partitions)
    runs = [each async for each in backfills.client.list_workflows(f'WorkflowId = "{backfills.id}"')]
    assert len(runs) > count // starts_per_run - 1
    sizes = []
    for run in runs:
        described = await backfills.client.get_workflow_handle(backfills.id, run_id=run.run_id).describe()
        info = described.raw_description.workflow_execution_info
        sizes.append((info.history_length, info.history_size_bytes))
    assert max(events for events, _ in sizes) < 15 * starts_per_run, sizes
    assert max(size for _, size in sizes) < 5_000 * starts_per_run, sizes


async def test_a_retry_that_waited_for_a_worker_replays(client: Client) -> None:
    """Temporal delivers the child's end and the retry to the new worker together, and to later workers separately."""
    backfills = Backfills(client)
    async with backfills.worker():
        handle = await backfills.start(2, window=2)
        await backfills.wait(lambda status: len(status.children) == 2)
        first = await backfills.child("p0")
        await backfills.child("p1")
        await backfills.end("p0", "failed")
        await first.result()
        await _until_tasks_are_done(handle)
    retry = asyncio.create_task(backfills.change("retry"))
    await asyncio.sleep(1)
    async with backfills.worker():
        await retry
        for name in ("p0", "p1"):
            await backfills.end(name)
        assert count_states((await handle.result()).progress) == {"published": 2}
        assert STARTS[backfills.queue] == ["p0", "p1", "p0"]
    replayer = Replayer(workflows=[Backfill], workflow_runner=sandbox(), data_converter=client.data_converter)
    await replayer.replay_workflow(await handle.fetch_history())
    ended = await read_backfill(client, SETTINGS.installation, backfills.name)
    assert count_states(ended.progress) == {"published": 2}, "no worker is needed to read what has ended"


async def _until_tasks_are_done(handle: WorkflowHandle[Any, Any]) -> None:
    """Wait until no workflow task is scheduled or under way."""

    async def are_done() -> bool:
        return not (await handle.describe()).raw_description.HasField("pending_workflow_task")

    await until(are_done, lambda: "a workflow task is not done")
