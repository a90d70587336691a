"""The workflow of a landing zone: pauses, notices to people, removal, long histories, and deployments."""

import asyncio
import uuid
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError
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
    CollectArrivalsResult,
    FinishArrivalsResult,
    KeptOutFile,
    LandingZoneInput,
    landing_zone_id,
)
from sluice.contracts.starting import EndedRun, PipelineText
from sluice.contracts.zone_requests import PauseZone
from sluice.errors import ServiceUnavailable
from sluice.settings import Settings
from tests.harness.waiting import in_time, until
from tests.harness.zone_workflow import TEXT, RunOfATest, Zone, arrived, batch
from workflows.arrivals.arrival_runs import ArrivalRuns
from workflows.arrivals.landing_zone import LandingZone
from workflows.sandbox import sandbox


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
    await zone.list_files(arrived("c"))
    await zone.until(lambda now: now.get("c") == "waiting" and "b" not in now)
    now = await zone.status()
    assert (now.paused, now.resumed) == ("a look at it (ana)", "")


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


async def test_problems_silence_and_files_that_are_kept_out_are_told_once(zone: Zone) -> None:
    zone.answers = [CollectArrivalsResult(problem="there is no folder /landing")] * 2
    await zone.start(expect=0.5)
    await zone.until(lambda _: bool(zone.listings))
    await zone.list_files()
    status = await zone.status()
    assert (status.problem, status.expect) == ("there is no folder /landing", 0.5)
    kept_out = [KeptOutFile(path="/landing/a", reason="overwritten")]
    await zone.list_files(CollectArrivalsResult(kept_out=kept_out, mark="m:1", latest_arrival=1.0))
    await zone.list_files(
        CollectArrivalsResult(kept_out=kept_out, mark="other:1", latest_arrival=1.0)
    )  # of another worker
    assert (await zone.status()).problem == ""
    await zone.until_notified("nothing to load arrived")
    texts = "; ".join(zone.notices)
    assert (texts.count("cannot be listed"), texts.count("/landing/a is not loaded: overwritten")) == (1, 1)
    assert 1 <= texts.count("nothing to load arrived") <= 2 and "`expect` allows 0.5s" in texts
    assert zone.received[-1] == "m:1" and (await zone.status()).problem == ""


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


async def test_files_that_main_holds_are_finished_while_the_zone_goes_on(zone: Zone) -> None:
    zone.pause_finish = asyncio.Event()
    problem = "not moved: the store refuses DeleteObject: 403"
    zone.finish_answers = [FinishArrivalsResult(failed=2, problem=problem, has_more=True), FinishArrivalsResult()]
    zone.answers = [arrived("a", to_finish=3, put_off=0)]
    await zone.start()
    await zone.until(lambda now: now == {"a": "running"} and zone.finishes == [["a"]])
    await zone.list_files(arrived("b", to_finish=3))
    assert zone.finishes == [["a"]], "one call at a time"
    zone.pause_finish.set()
    await zone.until(lambda _: len(zone.finishes) == 2)
    await zone.list_files(arrived(put_off=2))
    assert (await zone.status()).unfinished == f"2 files: {problem}"
    await zone.list_files(arrived())
    await zone.until(lambda _: len(zone.listings) == 4)
    assert (await zone.status()).unfinished == ""
    zone.finish_answers = [ApplicationError("main is another one", type="CatalogChanged", non_retryable=True)]
    await zone.list_files(arrived(to_finish=1, put_off=1))
    await zone.until(lambda _: len(zone.finishes) == 3)
    await zone.list_files(arrived(put_off=1))
    assert (await zone.status()).unfinished == "main is another one"
    await zone.handle.execute_update(LandingZone.pause, PauseZone(paused=True, by="ana"))
    await zone.list_files(arrived(to_finish=1, put_off=1))
    await zone.status()
    assert len(zone.finishes) == 3, "a paused zone touches no file"
    replayer = Replayer(workflows=[LandingZone], workflow_runner=sandbox(), data_converter=converter({}))
    await replayer.replay_workflow(await zone.handle.fetch_history())


async def test_a_zone_that_continues_as_new_holds_what_it_held(zone: Zone) -> None:
    held = [Batch(ref=batch("a"), state="kept out", reason="bad"), Batch(ref=batch("b"), state="running", tries=1)]
    await zone.start(batches=held, paused="by ana", latest_arrival=5.0)
    await zone.until(lambda _: bool(zone.listings))
    await zone.run_of("b")  # no workflow runs it any more, so the zone starts it
    now = await zone.status()
    assert (zone.listings[0], now.paused, now.latest_arrival) == (["a", "b"], "by ana", 5.0)
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
        await zone.list_files(CollectArrivalsResult(kept_out=[kept_out], mark=f"m:{number}"))
    described = await zone.handle.describe()
    assert described.raw_info.first_run_id != described.run_id
    assert await zone.states() == {"a": "kept out", "b": "running"}
    await zone.end("b", "published")
    await zone.until(lambda now: now == {"a": "kept out"})
    assert sum("/landing/x" in notice for notice in zone.notices) == 1, "people are told once"


async def test_another_version_of_the_pipeline_is_taken(zone: Zone) -> None:
    await zone.start()
    await zone.until(lambda _: bool(zone.listings))
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
        await zone.list_files(arrived("b"))
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


async def test_without_a_worker_a_command_says_so(client: Client, tmp_path: Path) -> None:
    own = f"zone-{uuid.uuid4().hex[:8]}"
    settings = Settings.of(sluice_installation=own, sluice_task_queue="nobody", sluice_worker_wait=0.3)
    stated = LandingZoneInput(pipeline=TEXT, name="p", installation="here", look=600, at_once=1, on_failure="continue")
    id = landing_zone_id(settings.installation.sluice_installation, "p")
    handle = await client.start_workflow(LandingZone.run, stated, id=id, task_queue="nobody")
    with pytest.raises(ServiceUnavailable, match=r"no worker answered for .*SLUICE_TASK_QUEUE=nobody"):
        await pause_zone(client, settings.installation, "p", PauseZone(paused=True, by="ana"))
    await handle.terminate()


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
