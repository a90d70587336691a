"""The batches of a landing zone: their order, and retries and splits of batches that were kept out."""

import asyncio

import pytest
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.service import RPCError
from temporalio.worker import Replayer

from runtime.temporal_client import converter
from sluice.contracts.arrivals import Batch, CollectArrivalsResult
from sluice.contracts.starting import EndedRun, StartPipelineInput
from sluice.contracts.zone_loads import LoadBatch
from sluice.contracts.zone_requests import BatchCommand, PauseZone, SplitBatch
from tests.harness.zone_workflow import TEXT, RunOfATest, Zone, arrived, batch
from workflows.arrivals.landing_zone import LandingZone
from workflows.sandbox import sandbox


async def test_batches_are_loaded_in_their_order_so_many_at_a_time(zone: Zone) -> None:
    zone.answers = [arrived("a", "b", "c")]
    await zone.start(at_once=2)
    await zone.until(lambda now: now == {"a": "running", "b": "running", "c": "waiting"})
    await zone.end("a", "published")
    await zone.until(lambda now: now == {"b": "running", "c": "running"})
    await zone.end("b", "failed", cause="already_published")
    await zone.end("c", "published")
    await zone.until(lambda now: now == {})
    assert zone.listings[0] == [] and zone.listings[-1] == []
    started = await zone.client.get_workflow_handle(f"{zone.name}-a-1").result()
    assert started == ["/landing/a-0", "/landing/a-1"]


async def test_a_batch_that_is_kept_out_stops_nothing_and_can_be_retried_or_set_aside(zone: Zone) -> None:
    zone.answers = [arrived("a", "b")]
    await zone.start()
    await zone.until(lambda now: now.get("a") == "running")
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await zone.handle.execute_update(LandingZone.command, BatchCommand(action="retry", batch="a", by="ana"))
    assert "is running" in str(refused.value.cause)
    await zone.end("a", "quarantined", cause="audit", reason="not_null(id) failed", branch="quarantine/p/1")
    await zone.until(lambda now: now == {"a": "kept out", "b": "running"})
    (kept,) = [each for each in (await zone.status()).batches if each.ref.id == "a"]
    assert (kept.reason, kept.outcome, kept.workflow_id) == ("not_null(id) failed", "quarantined", "p-1")
    await zone.handle.execute_update(LandingZone.command, BatchCommand(action="retry", batch="a", by="ana"))
    await zone.end("b", "published")
    await zone.until(lambda now: now == {"a": "running"})
    await zone.end("a", "failed", tries=2, reason="no such column")
    await zone.until(lambda now: now == {"a": "kept out"})
    request = BatchCommand(action="set aside", batch="a", by="ana")
    assert (await zone.handle.execute_update(LandingZone.command, request)).state == "set aside"
    await zone.list_files(arrived())
    assert zone.listings[-1] == ["a"], "its files are in no other batch"
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await zone.handle.execute_update(LandingZone.command, BatchCommand(action="retry", batch="x", by="ana"))
    assert "there is no batch 'x'" in str(refused.value.cause)


async def test_a_batch_of_named_files_is_loaded_like_any_other_and_may_hold_other_content(zone: Zone) -> None:
    await zone.start()
    await zone.list_files(arrived())
    loaded = await zone.handle.execute_update(LandingZone.load, LoadBatch(ref=batch("named"), by="ana"))
    assert (loaded.state, loaded.reason, loaded.is_named) == ("waiting", "loaded by ana", True)
    run = await zone.run_of("named")
    request = await anext(run.fetch_history_events())
    (given,) = await zone.client.data_converter.decode(
        request.workflow_execution_started_event_attributes.input.payloads, [StartPipelineInput]
    )
    assert given.loads_overwritten and given.expected == "lake/named.json"
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await zone.handle.execute_update(LandingZone.load, LoadBatch(ref=batch("named"), by="ana"))
    assert "these files are in batch named, which is running" in str(refused.value.cause)
    await zone.end("named", "published")
    await zone.until(lambda now: now == {})


async def test_what_others_loaded_is_held_no_more(zone: Zone) -> None:
    zone.answers = [arrived("a")]
    await zone.start()
    await zone.until(lambda now: now == {"a": "running"})
    await zone.end("a", "quarantined")
    await zone.until(lambda now: now == {"a": "kept out"})
    await zone.list_files(arrived(loaded=["a"]))
    await zone.until(lambda now: now == {})


async def test_a_run_that_is_terminated_leaves_its_batch_to_people(zone: Zone) -> None:
    zone.answers = [arrived("a")]
    await zone.start()
    await zone.until(lambda now: now == {"a": "running"})
    await (await zone.run_of("a")).terminate()
    await zone.until(lambda now: now == {"a": "kept out"})
    (kept,) = (await zone.status()).batches
    assert "without a report" in kept.reason


async def test_a_start_that_the_worker_refuses_leaves_its_batch_to_people_with_the_reason(zone: Zone) -> None:
    zone.answers = [arrived("a")]
    await zone.start()
    await (await zone.run_of("a")).signal("refuse", "the check has an unheard key")
    await zone.until(lambda states: states == {"a": "kept out"})
    assert (await zone.status()).batches[0].reason == "the check has an unheard key"


async def test_a_batch_whose_list_is_lost_ends_no_zone(zone: Zone) -> None:
    zone.answers = [arrived("lost", "b")]
    await zone.start()
    await zone.until(lambda now: now == {"lost": "kept out", "b": "running"})
    (kept, _) = (await zone.status()).batches
    assert "is missing" in kept.reason


async def test_a_refused_batch_that_is_retried_is_collected_again(zone: Zone) -> None:
    zone.answers = [arrived("a")]
    await zone.start()
    await zone.until(lambda now: now == {"a": "running"})
    await zone.end("a", "refused", reason="there are no files at /landing/a-1")
    await zone.until(lambda now: now == {"a": "kept out"})
    zone.answers = [arrived("rest")]
    await zone.handle.execute_update(LandingZone.command, BatchCommand(action="retry", batch="a", by="ana"))
    await zone.until(lambda now: now == {"rest": "running"})
    assert zone.listings[-1] == []


async def test_a_batch_that_is_kept_out_is_split_until_its_bad_file_is_alone(zone: Zone) -> None:
    zone.answers = [arrived("ab", "c")]
    await zone.start(at_once=2)
    await zone.until(lambda now: now == {"ab": "running", "c": "running"})

    async def split(name: str) -> list[str]:
        request = SplitBatch(batch=name, by="ana")
        return [each.ref.id for each in await zone.handle.execute_update(LandingZone.split, request)]

    for name, why in (("ab", "is running"), ("other", "there is no batch")):
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await split(name)
        assert why in str(refused.value.cause)
    await zone.end("ab", "quarantined", reason="not_null(id) failed")
    await zone.until(lambda now: now["ab"] == "kept out")
    assert await split("ab") == ["ab-0", "ab-1"]
    await zone.until(lambda now: now == {"ab-0": "running", "ab-1": "waiting", "c": "running"})
    await zone.end("ab-0", "published")
    await zone.until(lambda now: now == {"ab-1": "running", "c": "running"})
    await zone.end("ab-1", "quarantined", reason="not_null(id) failed")
    await zone.until(lambda now: now["ab-1"] == "kept out")
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await split("ab-1")
    assert "has one file" in str(refused.value.cause)
    await zone.end("c", "published")
    await zone.until(lambda now: now == {"ab-1": "kept out"})
    replayer = Replayer(workflows=[LandingZone], workflow_runner=sandbox(), data_converter=converter({}))
    await replayer.replay_workflow(await zone.handle.fetch_history())


async def test_a_batch_whose_file_changed_under_its_run_is_collected_again(zone: Zone) -> None:
    zone.answers = [arrived("a")]
    await zone.start(on_failure="pause")
    await zone.until(lambda now: now == {"a": "running"})
    zone.answers = [arrived(counts={"waiting": 2}, look_in=0.1), arrived("a")]
    await zone.end("a", "failed", cause="input_changed", reason="/landing/a-1 was touched")
    await zone.until(lambda now: now == {"a": "running"} and len(zone.listings) > 2)
    assert zone.listings[1:] == [[], []] and not (await zone.status()).paused
    await zone.end("a", "published")
    await zone.until(lambda now: now == {})


async def test_where_order_matters_an_older_batch_is_not_retried_after_a_younger_one(zone: Zone) -> None:
    zone.answers = [arrived("a", "b")]
    await zone.start(on_failure="pause", in_order=True)
    await zone.until(lambda now: now.get("a") == "running")
    await zone.end("a", "quarantined", reason="not_null(id) failed")
    await zone.until(lambda now: now == {"a": "kept out", "b": "waiting"})
    await zone.handle.execute_update(LandingZone.pause, PauseZone(paused=False, by="ana"))
    await zone.until(lambda now: now.get("b") == "running")
    await zone.end("b", "published")
    await zone.until(lambda now: "b" not in now)
    retry = BatchCommand(action="retry", batch="a", by="ana")
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await zone.handle.execute_update(LandingZone.command, retry)
    assert "the younger batch b was loaded" in str(refused.value.cause)
    await zone.handle.execute_update(LandingZone.command, retry.model_copy(update={"over_younger": True}))
    await zone.until(lambda now: now == {"a": "running"})


async def test_a_batch_is_started_while_the_zone_is_listed(zone: Zone) -> None:
    zone.pause = asyncio.Event()
    await zone.start(batches=[Batch(ref=batch("a")), Batch(ref=batch("b"))])
    await zone.until(lambda now: now == {"a": "running", "b": "waiting"})
    await zone.end("a", "published")
    await zone.until(lambda now: now == {"b": "running"})
    assert len(zone.listings) == 1
    await zone.handle.cancel()
    zone.pause.set()
    with pytest.raises(WorkflowFailureError):
        await zone.handle.result()


async def test_a_batch_that_is_decided_about_while_it_is_read_is_not_run(zone: Zone) -> None:
    zone.held_read = asyncio.Event()
    await zone.start(batches=[Batch(ref=batch("a"), state="running", tries=1)])
    await zone.until(lambda _: bool(zone.reads))
    await zone.handle.signal(LandingZone.run_ended, EndedRun(key="a", outcome="quarantined", reason="bad"))
    await zone.until(lambda now: now == {"a": "kept out"})
    await zone.handle.execute_update(LandingZone.command, BatchCommand(action="set aside", batch="a", by="ana"))
    zone.held_read.set()
    await zone.list_files()
    await zone.list_files()
    assert await zone.states() == {"a": "set aside"}
    with pytest.raises(RPCError):
        await zone.client.get_workflow_handle(f"{zone.name}-a-1").describe()


async def test_a_run_that_was_started_before_is_not_started_at_each_listing(zone: Zone) -> None:
    given = StartPipelineInput(pipeline=TEXT, starter="arrivals of p", key="a", report_to=zone.name)
    child = f"{zone.name}-a-1"
    run = await zone.client.start_workflow(RunOfATest.run, given, id=child, task_queue=zone.name)
    await zone.start(batches=[Batch(ref=batch("a"), state="running", tries=1)])
    await zone.until(lambda _: bool(zone.reads))
    await zone.list_files()
    await zone.list_files()
    assert zone.reads == ["a"]
    await run.signal("end", EndedRun(outcome="published"))
    await zone.until(lambda now: now == {})


async def test_a_file_that_changes_under_each_run_is_left_to_people(zone: Zone) -> None:
    """Each change results in another batch with the same paths."""
    ids = ["a1", "a2", "a3", "a4"]
    refs = [batch(id).model_copy(update={"paths": "same"}) for id in ids]
    zone.answers = [CollectArrivalsResult(batches=[refs[0]])]
    await zone.start(on_failure="pause")
    for id, following in zip(ids[:3], refs[1:], strict=True):
        await zone.until(lambda now, id=id: now == {id: "running"})  # type: ignore[misc]
        if id != "a3":
            zone.answers = [CollectArrivalsResult(batches=[following])]
        await zone.end(id, "failed", cause="input_changed", run_id="r", reason="/landing/a was touched")
    await zone.until(lambda now: now == {"a3": "kept out"})
    status = await zone.status()
    assert status.batches[0].reason == "files changed under 3 runs in a row: /landing/a was touched"
    assert "a3 was kept out" in status.paused
    await zone.handle.execute_update(LandingZone.pause, PauseZone(paused=False, by="ana"))
    await zone.list_files(CollectArrivalsResult(batches=[refs[3]]))
    await zone.until(lambda now: now == {"a4": "kept out"})
    zone.answers = [arrived("a5")]
    await zone.handle.execute_update(LandingZone.command, BatchCommand(action="retry", batch="a4", by="ana"))
    await zone.until(lambda now: now == {"a5": "running"})
