"""The workflow of a landing zone: it looks, starts runs within its limits, and keeps the batches that were kept out."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client, WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.worker import Replayer, Worker

from activities.arrivals.report_arrival_runs import ReportArrivalRunsActivity
from activities.errors import ErrorMapping
from runtime.arrivals.landing_zones import list_zones, pause_zone
from runtime.schedules.deploy import make_set, plan_deploy, read_folder
from runtime.schedules.pausing import pause_pipeline, resume_pipeline
from runtime.temporal_client import converter
from sluice.contracts.arrival_runs import arrival_runs_id
from sluice.contracts.arrivals import (
    Batch,
    BatchCommand,
    CollectArrivalsResult,
    FinishArrivalsResult,
    KeptOutFile,
    LandingZoneInput,
    PauseZone,
    SplitBatch,
    landing_zone_id,
)
from sluice.contracts.starting import EndedRun, PipelineText, StartPipelineInput
from sluice.contracts.zone_loads import LoadBatch
from sluice.errors import ServiceUnavailable
from sluice.settings import Settings
from tests.harness.waiting import in_time, until
from tests.harness.zone_workflow import TEXT, RunOfATest, Zone, arrived, batch
from workflows.arrivals.arrival_runs import ArrivalRuns
from workflows.arrivals.landing_zone import LandingZone
from workflows.sandbox import sandbox


@pytest.fixture
async def zone(client: Client) -> AsyncIterator[Zone]:
    zone = Zone(client)
    reporting = ReportArrivalRunsActivity(client, zone.name, zone.name, 100)
    async with Worker(
        client,
        task_queue=zone.name,
        workflows=[LandingZone, RunOfATest, ArrivalRuns],
        workflow_runner=sandbox(),
        interceptors=[ErrorMapping()],
        activities=[zone.collect, zone.read, zone.split, zone.notify, zone.finish, reporting.report_arrival_runs],
    ):
        yield zone
        with suppress(RPCError):  # the test has ended it
            await zone.handle.terminate()
        with suppress(RPCError):  # the test has nothing to start
            await client.get_workflow_handle(arrival_runs_id(zone.name, zone.name)).terminate()


async def test_batches_are_loaded_in_their_order_so_many_at_a_time(zone: Zone) -> None:
    zone.answers = [arrived("a", "b", "c")]
    await zone.start(at_once=2)
    await zone.until(lambda now: now == {"a": "running", "b": "running", "c": "waiting"})
    await zone.end("a", "published")
    await zone.until(lambda now: now == {"b": "running", "c": "running"})
    await zone.end("b", "failed", cause="already_published")
    await zone.end("c", "published")
    await zone.until(lambda now: now == {})
    assert zone.looks[0] == [] and zone.looks[-1] == []
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
    await zone.look(arrived())
    assert zone.looks[-1] == ["a"], "its files are in no other batch"
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await zone.handle.execute_update(LandingZone.command, BatchCommand(action="retry", batch="x", by="ana"))
    assert "there is no batch 'x'" in str(refused.value.cause)


async def test_a_batch_of_named_files_is_loaded_like_any_other_and_may_hold_other_content(zone: Zone) -> None:
    await zone.start()
    await zone.look(arrived())
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
    await zone.look(arrived(loaded=["a"]))
    await zone.until(lambda now: now == {})


async def test_a_run_that_is_terminated_leaves_its_batch_to_people(zone: Zone) -> None:
    zone.answers = [arrived("a")]
    await zone.start()
    await zone.until(lambda now: now == {"a": "running"})
    await (await zone.run_of("a")).terminate()
    await zone.until(lambda now: now == {"a": "kept out"})
    (kept,) = (await zone.status()).batches
    assert "without a report" in kept.reason


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
    assert zone.looks[-1] == []


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
    await zone.until(lambda now: now == {"a": "running"} and len(zone.looks) > 2)
    assert zone.looks[1:] == [[], []] and not (await zone.status()).paused
    await zone.end("a", "published")
    await zone.until(lambda now: now == {})


async def test_a_failure_pauses_the_zone_where_its_pipeline_asks_for_it(zone: Zone) -> None:
    zone.answers = [arrived("a", "b")]
    await zone.start(on_failure="pause")
    await zone.until(lambda now: now.get("a") == "running")
    await zone.end("a", "quarantined", reason="not_null(id) failed")
    await zone.until(lambda now: now == {"a": "kept out", "b": "waiting"})
    assert "a was kept out: not_null(id) failed" in (await zone.status()).paused
    resume = PauseZone(paused=False, note="it is repaired", by="ana")
    assert await zone.handle.execute_update(LandingZone.pause, resume) == "it is repaired (ana)"
    await zone.until(lambda now: now == {"a": "kept out", "b": "running"})
    now = await zone.status()
    assert (now.paused, now.resumed) == ("", "it is repaired (ana)")
    await zone.handle.execute_update(LandingZone.pause, PauseZone(paused=True, note="a look at it", by="ana"))
    await zone.end("b", "published")
    await zone.look(arrived("c"))
    await zone.until(lambda now: now.get("c") == "waiting" and "b" not in now)
    now = await zone.status()
    assert (now.paused, now.resumed) == ("a look at it (ana)", "")


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


@pytest.mark.parametrize("lost", ["its run", "its list"])
async def test_a_batch_that_no_run_can_report_about_pauses_it_too(zone: Zone, lost: str) -> None:
    """With `mode: merge`, a later batch would be loaded over this one, and a retry of this one over the later."""
    name = "lost" if lost == "its list" else "a"
    zone.answers = [arrived(name, "b")]
    await zone.start(on_failure="pause")
    if lost == "its run":
        await (await zone.run_of("a")).terminate()
    await zone.until(lambda now: now == {name: "kept out", "b": "waiting"})
    assert f"batch {name} was kept out: " in (await zone.status()).paused
    await zone.until_notified("no more batches are loaded")


@pytest.mark.parametrize(("files", "length"), [(501, 10), (200, 500)], ids=["many", "long"])
async def test_more_names_than_a_request_can_hold_have_the_zone_listed(zone: Zone, files: int, length: int) -> None:
    """Names that arrive during a look are collected. A hostile sender must not make the next look impossible."""
    zone.pause = asyncio.Event()
    await zone.start()
    await zone.until(lambda _: len(zone.looks) == 1)
    names = [f"{number:0{length}}" for number in range(files)]
    for start in range(0, files, 100):
        await zone.handle.signal(LandingZone.look, names[start : start + 100])
    zone.pause.set()
    await zone.until(lambda _: len(zone.looks) == 2)
    assert zone.named == [None, None]


async def test_notifications_that_come_often_lead_to_few_looks(zone: Zone) -> None:
    await zone.start()
    await zone.until(lambda _: len(zone.looks) == 1)
    began = time.monotonic()
    for _ in range(20):
        await zone.handle.signal(LandingZone.look)
    took = time.monotonic() - began
    await zone.until(lambda _: len(zone.looks) >= 2)
    await asyncio.sleep(2)
    assert len(zone.looks) <= 3 + took, "one in a second is enough"


async def test_a_notification_during_a_look_leads_to_another_one(zone: Zone) -> None:
    zone.pause = asyncio.Event()
    await zone.start()
    await zone.until(lambda _: len(zone.looks) == 1)
    await zone.handle.signal(LandingZone.look)
    await zone.status()
    zone.pause.set()
    await zone.until(lambda _: len(zone.looks) == 2)


async def test_a_batch_is_started_while_the_zone_is_listed(zone: Zone) -> None:
    zone.pause = asyncio.Event()
    await zone.start(batches=[Batch(ref=batch("a")), Batch(ref=batch("b"))])
    await zone.until(lambda now: now == {"a": "running", "b": "waiting"})
    await zone.end("a", "published")
    await zone.until(lambda now: now == {"b": "running"})
    assert len(zone.looks) == 1
    await zone.handle.cancel()
    zone.pause.set()
    with pytest.raises(WorkflowFailureError):
        await zone.handle.result()


async def test_a_removal_while_a_batch_is_read_is_followed(zone: Zone) -> None:
    """The reading completes in spite of the cancel. Otherwise, nobody could remove the landing zone afterwards."""
    zone.held_read, zone.answers = asyncio.Event(), [arrived("a")]
    await zone.start()
    while len(zone.reads) < 2:  # the local try ends after some seconds
        await asyncio.sleep(0.1)
    await zone.handle.cancel()
    await asyncio.sleep(1)
    zone.held_read.set()
    with pytest.raises(WorkflowFailureError):
        await in_time(zone.handle.result())


async def test_files_that_settle_are_looked_at_without_a_notification(zone: Zone) -> None:
    zone.answers = [CollectArrivalsResult(counts={"waiting": 1}, look_in=1.0), arrived("a")]
    await zone.start()
    await zone.until(lambda now: now == {"a": "running"})
    await zone.end("a", "published")
    await zone.until(lambda now: now == {})


async def test_problems_silence_and_files_that_are_kept_out_are_told_once(zone: Zone) -> None:
    zone.answers = [CollectArrivalsResult(problem="there is no folder /landing")] * 2
    await zone.start(expect=0.5)
    await zone.until(lambda _: bool(zone.looks))
    await zone.look()
    assert (await zone.status()).problem == "there is no folder /landing"
    kept_out = [KeptOutFile(path="/landing/a", reason="overwritten")]
    await zone.look(CollectArrivalsResult(kept_out=kept_out, mark="m:1", latest_arrival=1.0))
    await zone.look(CollectArrivalsResult(kept_out=kept_out, mark="other:1", latest_arrival=1.0))  # of another worker
    assert (await zone.status()).problem == ""
    await zone.until_notified("nothing to load arrived")
    texts = "; ".join(zone.notices)
    assert (texts.count("cannot be listed"), texts.count("/landing/a is not loaded: overwritten")) == (1, 1)
    assert 1 <= texts.count("nothing to load arrived") <= 2 and "`expect` allows 0.5s" in texts
    assert zone.received[-1] == "m:1" and (await zone.status()).problem == ""


async def test_a_store_that_does_not_answer_is_reported_when_it_lasts(zone: Zone) -> None:
    away = CollectArrivalsResult(problem="the store does not answer", is_passing=True)
    zone.answers = [away, arrived(), away]
    await zone.start()
    await zone.until(lambda _: bool(zone.looks))
    await zone.look()
    await zone.look(away)
    assert zone.notices == []
    await zone.look(away, arrived())
    await zone.until_notified("the store does not answer")
    await zone.look()
    assert zone.notices == ["cannot be listed: the store does not answer"]


async def test_people_are_told_of_batches_that_no_run_can_tell_of_and_of_a_pause(zone: Zone) -> None:
    zone.answers = [arrived("a", "b")]
    await zone.start(on_failure="pause")
    await zone.until(lambda now: now.get("a") == "running")
    await zone.end("a", "refused", reason="no such column: amount")
    await zone.until_notified("batch a is kept out, and no run loads it: no such column: amount")
    await zone.until_notified("no more batches are loaded: batch a was kept out: no such column: amount")
    await zone.handle.execute_update(LandingZone.pause, PauseZone(paused=False, by="ana"))
    await zone.until(lambda now: now.get("b") == "running")
    await zone.end("b", "quarantined", run_id="r", reason="a check failed")
    await zone.until_notified("batch b was kept out: a check failed")
    assert "no run loads it: a check failed" not in "; ".join(zone.notices), "the run told of it"


async def test_a_look_that_fails_is_repeated_and_its_history_is_replayed(zone: Zone) -> None:
    zone.answers = [ApplicationError("the store does not answer", type="ServiceUnavailable"), arrived("a")]
    await zone.start()
    await zone.until(lambda now: now == {"a": "running"})
    await zone.end("a", "published")
    await zone.until(lambda now: now == {})
    replayer = Replayer(workflows=[LandingZone], workflow_runner=sandbox(), data_converter=converter({}))
    await replayer.replay_workflow(await zone.handle.fetch_history())


async def test_files_that_main_holds_are_finished_while_the_zone_goes_on(zone: Zone) -> None:
    zone.pause_finish = asyncio.Event()
    problem = "not moved: the store refuses DeleteObject: 403"
    zone.finish_answers = [FinishArrivalsResult(failed=2, problem=problem, has_more=True), FinishArrivalsResult()]
    zone.answers = [arrived("a", to_finish=3, put_off=0)]
    await zone.start()
    await zone.until(lambda now: now == {"a": "running"} and zone.finishes == [["a"]])
    await zone.look(arrived("b", to_finish=3))
    assert zone.finishes == [["a"]], "one call at a time"
    zone.pause_finish.set()
    await zone.until(lambda _: len(zone.finishes) == 2)
    await zone.look(arrived(put_off=2))
    assert (await zone.status()).unfinished == f"2 files: {problem}"
    await zone.look(arrived())
    await zone.until(lambda _: len(zone.looks) == 4)
    assert (await zone.status()).unfinished == ""
    zone.finish_answers = [ApplicationError("main is another one", type="CatalogChanged", non_retryable=True)]
    await zone.look(arrived(to_finish=1, put_off=1))
    await zone.until(lambda _: len(zone.finishes) == 3)
    await zone.look(arrived(put_off=1))
    assert (await zone.status()).unfinished == "main is another one"
    await zone.handle.execute_update(LandingZone.pause, PauseZone(paused=True, by="ana"))
    await zone.look(arrived(to_finish=1, put_off=1))
    await zone.status()
    assert len(zone.finishes) == 3, "a paused zone touches no file"
    replayer = Replayer(workflows=[LandingZone], workflow_runner=sandbox(), data_converter=converter({}))
    await replayer.replay_workflow(await zone.handle.fetch_history())


async def test_a_zone_that_continues_as_new_holds_what_it_held(zone: Zone) -> None:
    held = [Batch(ref=batch("a"), state="kept out", reason="bad"), Batch(ref=batch("b"), state="running", tries=1)]
    await zone.start(batches=held, paused="by ana", latest_arrival=5.0)
    await zone.until(lambda _: bool(zone.looks))
    await zone.run_of("b")  # no workflow runs it any more, so the zone starts it
    now = await zone.status()
    assert (zone.looks[0], now.paused, now.latest_arrival) == (["a", "b"], "by ana", 5.0)
    ended = EndedRun(key="b", outcome="published")
    await zone.handle.signal(LandingZone.run_ended, ended)
    await zone.until(lambda now: now == {"a": "kept out"})


async def test_a_long_history_is_continued_as_new_with_all_that_the_zone_holds(
    zone: Zone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflow.Info, "is_continue_as_new_suggested", lambda of: of.get_current_history_length() > 30)
    zone.answers = [arrived("a", "b")]
    kept_out = KeptOutFile(path="/landing/x", reason="overwritten")
    await zone.start()
    await zone.until(lambda now: now.get("a") == "running")
    await zone.end("a", "quarantined", run_id="r", reason="bad")
    await zone.until(lambda now: now == {"a": "kept out", "b": "running"})
    for number in range(8):
        await zone.look(CollectArrivalsResult(kept_out=[kept_out], mark=f"m:{number}"))
    described = await zone.handle.describe()
    assert described.raw_info.first_run_id != described.run_id
    assert await zone.states() == {"a": "kept out", "b": "running"}
    await zone.end("b", "published")
    await zone.until(lambda now: now == {"a": "kept out"})
    assert sum("/landing/x" in notice for notice in zone.notices) == 1, "people are told once"


async def test_a_batch_that_is_decided_about_while_it_is_read_is_not_run(zone: Zone) -> None:
    zone.held_read = asyncio.Event()
    await zone.start(batches=[Batch(ref=batch("a"), state="running", tries=1)])
    await zone.until(lambda _: bool(zone.reads))
    await zone.handle.signal(LandingZone.run_ended, EndedRun(key="a", outcome="quarantined", reason="bad"))
    await zone.until(lambda now: now == {"a": "kept out"})
    await zone.handle.execute_update(LandingZone.command, BatchCommand(action="set aside", batch="a", by="ana"))
    zone.held_read.set()
    await zone.look()
    await zone.look()
    assert await zone.states() == {"a": "set aside"}
    with pytest.raises(RPCError):
        await zone.client.get_workflow_handle(f"{zone.name}-a-1").describe()


async def test_a_run_that_was_started_before_is_not_started_at_each_look(zone: Zone) -> None:
    given = StartPipelineInput(pipeline=TEXT, starter="arrivals of p", key="a", report_to=zone.name)
    child = f"{zone.name}-a-1"
    run = await zone.client.start_workflow(RunOfATest.run, given, id=child, task_queue=zone.name)
    await zone.start(batches=[Batch(ref=batch("a"), state="running", tries=1)])
    await zone.until(lambda _: bool(zone.reads))
    await zone.look()
    await zone.look()
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
    await zone.look(CollectArrivalsResult(batches=[refs[3]]))
    await zone.until(lambda now: now == {"a4": "kept out"})
    zone.answers = [arrived("a5")]
    await zone.handle.execute_update(LandingZone.command, BatchCommand(action="retry", batch="a4", by="ana"))
    await zone.until(lambda now: now == {"a5": "running"})


async def test_another_version_of_the_pipeline_is_taken(zone: Zone) -> None:
    await zone.start()
    await zone.until(lambda _: bool(zone.looks))
    newer = PipelineText(name="p.yml", text="name: p\ndescription: newer", folder="/")
    stated = LandingZoneInput(
        pipeline=newer, name="p", installation="here", look=300, at_once=3, on_failure="pause", set_name="s"
    )
    zone.answers = [arrived("a", "b", "c")]
    await zone.handle.execute_update(LandingZone.replace_pipeline, stated)
    await zone.until(lambda now: [*now.values()] == ["running"] * 3)
    assert (await zone.status()).pipeline == newer
    memo = await (await zone.handle.describe()).memo()
    assert memo["sluice.landing_zone"]["set"] == "s"


async def test_a_zone_that_is_deployed_for_another_task_queue_continues_there(zone: Zone) -> None:
    """It keeps its batches, and releases its slots on the old queue, where no worker may be left."""
    zone.answers = [arrived("a")]
    await zone.start(batches=[Batch(ref=batch("k"), state="kept out", reason="bad")])
    await zone.until(lambda now: now == {"k": "kept out", "a": "running"})
    queue = f"{zone.name}-2"
    stated = LandingZoneInput(
        pipeline=TEXT, name="p", installation="here", look=600, at_once=1, on_failure="continue", task_queue=queue
    )
    await zone.handle.execute_update(LandingZone.replace_pipeline, stated)
    slots = zone.client.get_workflow_handle_for(ArrivalRuns.run, arrival_runs_id(zone.name, zone.name))

    async def has_moved() -> bool:
        return (await zone.handle.describe()).task_queue == queue

    await until(has_moved)
    assert (await slots.query(ArrivalRuns.slots)).zones == []
    reporting = ReportArrivalRunsActivity(zone.client, zone.name, queue, 100)
    async with Worker(
        zone.client,
        task_queue=queue,
        workflows=[LandingZone, RunOfATest, ArrivalRuns],
        workflow_runner=sandbox(),
        interceptors=[ErrorMapping()],
        activities=[zone.collect, zone.read, reporting.report_arrival_runs],
    ):
        await zone.until(lambda now: now == {"k": "kept out", "a": "running"})
        await zone.end("a", "published")  # it still runs on its first task queue
        await zone.look(arrived("b"))
        await zone.until(lambda now: now == {"k": "kept out", "b": "running"})
        there = zone.client.get_workflow_handle_for(ArrivalRuns.run, arrival_runs_id(zone.name, queue))
        await there.terminate()


async def test_a_zone_is_deployed_changed_while_it_is_paused_and_removed(zone: Zone, tmp_path: Path) -> None:
    """Deploys of this installation do not change the zones of another one."""
    settings = Settings.of(sluice_installation=zone.name, sluice_task_queue=zone.name)
    other = settings.with_values(sluice_installation=f"{zone.name}-other")
    file = tmp_path / "p.yml"
    text = f"name: p\nwrite: {{source: {{format: csv}}}}\ntables: [t.x]\narrival: {{from: {tmp_path}, settle: 5s}}\n"

    async def deploy(to: Settings = settings) -> list[tuple[str, list[str]]]:
        plan = await plan_deploy(zone.client, to, read_folder(tmp_path), make_set(tmp_path, ""), tmp_path)
        await plan.apply()
        return [(change.action, list(change.differences)) for change in plan.changes]

    async def until_listed(names: list[str], to: Settings = settings) -> None:
        async def are_listed() -> bool:
            return await list_zones(zone.client, to.installation) == names

        await until(are_listed, lambda: f"{names} are not what is listed")

    file.write_text(text)
    for each in (settings, other):
        assert [action for action, _ in await deploy(each)] == ["create"]
        await until_listed(["p"], each)
    zone.handle = zone.client.get_workflow_handle_for(LandingZone.run, landing_zone_id(zone.name, "p"))
    await pause_pipeline(zone.client, settings.installation, "p", "the supplier repairs files")
    assert await deploy() == [("unchanged", [])]
    file.write_text(text.replace("settle: 5s", "settle: 6s, after: move, move_to: /elsewhere"))
    [(action, differences)] = await deploy()
    assert action == "change" and {"settle: 5s → 6s", "after: keep → move to /elsewhere"} <= {*differences}
    now = await zone.status()
    assert "6s" in now.pipeline.text and now.paused.startswith("the supplier repairs files (")
    await resume_pipeline(zone.client, settings.installation, "p", "")
    assert (await zone.status()).paused == ""
    file.unlink()
    assert [action for action, _ in await deploy()] == ["remove"]
    await until_listed([])
    assert await list_zones(zone.client, other.installation) == ["p"]
    await zone.client.get_workflow_handle(landing_zone_id(f"{zone.name}-other", "p")).terminate()
    await zone.start()  # for the fixture to end


async def test_without_a_worker_a_command_says_so(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.arrivals.landing_zones._LIMIT", 1.0)
    settings = Settings.of(sluice_installation=f"zone-{uuid.uuid4().hex[:8]}", sluice_task_queue="nobody")
    stated = LandingZoneInput(pipeline=TEXT, name="p", installation="here", look=600, at_once=1, on_failure="continue")
    id = landing_zone_id(settings.installation.sluice_installation, "p")
    handle = await client.start_workflow(LandingZone.run, stated, id=id, task_queue="nobody")
    with pytest.raises(ServiceUnavailable, match=r"no worker answered for .*SLUICE_TASK_QUEUE=nobody"):
        await pause_zone(client, settings.installation, "p", PauseZone(paused=True, by="ana"))
    await handle.terminate()


async def test_files_that_notifications_name_are_looked_at_without_a_listing(zone: Zone) -> None:
    settles = CollectArrivalsResult(look_in=0.5)
    zone.answers = [CollectArrivalsResult(), settles]
    await zone.start(look=5)
    await zone.until(lambda _: len(zone.looks) == 1)
    await zone.handle.signal(LandingZone.look, ["/landing/b.csv", "/landing/a.csv"])
    await zone.handle.signal(LandingZone.look, ["/landing/a.csv"])
    await zone.until(lambda _: len(zone.looks) == 3)  # once more when the files have settled
    assert zone.named == [None, ["/landing/a.csv", "/landing/b.csv"], []]
    await zone.until(lambda _: len(zone.looks) == 4)  # the interval between two listings continues
    assert zone.named[3] is None
    await zone.handle.signal(LandingZone.look)
    await zone.until(lambda _: len(zone.looks) == 5)
    assert zone.named[4] is None


@pytest.mark.parametrize("answer", [CollectArrivalsResult(look_in=0.5), CollectArrivalsResult(problem="it is away")])
async def test_the_whole_zone_is_listed_while_notifications_may_miss_files(
    zone: Zone, answer: CollectArrivalsResult
) -> None:
    zone.answers = [answer]
    await zone.start()
    await zone.until(lambda _: len(zone.looks) == 1)
    await zone.handle.signal(LandingZone.look, ["/landing/a.csv"])
    await zone.until(lambda _: len(zone.looks) == 2)
    await zone.handle.signal(LandingZone.look, ["/landing/b.csv"])
    await zone.until(lambda _: len(zone.looks) == 3)
    assert zone.named == [None, None, ["/landing/b.csv"]]


async def test_a_zone_that_is_named_very_many_files_is_listed(zone: Zone) -> None:
    await zone.start()
    await zone.until(lambda _: len(zone.looks) == 1)
    for part in range(3):
        await zone.handle.signal(LandingZone.look, [f"/landing/{part}-{number}.csv" for number in range(200)])
    await zone.until(lambda _: len(zone.looks) == 2)
    assert zone.named == [None, None]


async def test_another_version_of_a_pipeline_lists_the_zone(zone: Zone) -> None:
    handle = await zone.start()
    await zone.until(lambda _: len(zone.looks) == 1)
    given = LandingZoneInput(pipeline=TEXT, look=600, at_once=1, on_failure="continue", name="p", installation="here")
    await handle.execute_update(LandingZone.replace_pipeline, given)
    await zone.until(lambda _: len(zone.looks) == 2)
    assert zone.named == [None, None]


async def test_the_web_ui_shows_what_the_zone_holds(zone: Zone) -> None:
    zone.answers = [CollectArrivalsResult(batches=[batch("a")], counts={"waiting": 2, "loaded": 7})]
    await zone.start()
    await zone.until(lambda now: now == {"a": "running"})
    details = ""

    async def are_shown() -> bool:  # the details follow the state
        nonlocal details
        metadata = await zone.handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
        details = metadata.current_details
        return "Batches: 1 batch running (2 files)" in details

    await until(are_shown, lambda: details)
    assert details.startswith("**open**") and "Files: 7 loaded, 2 waiting" in details, details
