"""The limit of runs over all landing zones, on a real Temporal server: oldest batch first, also if zones disappear."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.service import RPCError
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, Worker

from activities.arrivals.report_arrival_runs import ReportArrivalRunsActivity
from activities.errors import ErrorMapping
from activities.run.find_ended_workflows import FindEndedWorkflowsActivity
from activities.run.running_workflows import RunningWorkflows
from runtime.temporal_client import converter
from sluice.contracts.arrival_runs import ZoneRuns, arrival_runs_id
from sluice.contracts.arrivals import Batch
from sluice.contracts.zone_requests import PauseZone
from tests.harness.waiting import until
from tests.harness.zone_workflow import RunOfATest, Zone, batch
from workflows.arrivals.arrival_runs import ArrivalRuns
from workflows.arrivals.landing_zone import LandingZone


def _has(batch: str, running: set[str]) -> bool:
    return batch in running and len(running) <= 2


class Installation:
    """Landing zones of one installation, which share its run slots."""

    def __init__(self, client: Client) -> None:
        self.client, self.name = client, f"i-{uuid.uuid4().hex[:8]}"
        self.listings = Zone(client)
        self.zones: dict[str, Zone] = {}

    async def zone(self, name: str, *batches: str, at_once: int = 5, since: float = 0.0, **more: Any) -> Zone:
        """Start a landing zone with batches, as if it had continued as new."""
        zone = self.zones[name] = Zone(self.client)
        zone.name = f"{self.name}-{name}"
        held = [Batch(ref=batch(each), since=since + number) for number, each in enumerate(batches)]
        stated = {"look": 600, "at_once": at_once, "on_failure": "continue", "name": name, "batches": held, **more}
        await zone.start(task_queue=self.name, **stated)
        return zone

    @property
    def slots(self) -> WorkflowHandle[ArrivalRuns, None]:
        return self.client.get_workflow_handle_for(ArrivalRuns.run, arrival_runs_id(self.name, self.name))

    async def running(self) -> set[str]:
        """Return the running batches of all zones."""
        states = {name: await zone.states() for name, zone in self.zones.items()}
        return {each for now in states.values() for each, state in now.items() if state == "running"}

    async def until(self, condition: Callable[[set[str]], bool]) -> None:
        async def reached() -> bool:
            return condition(await self.running())

        async def present() -> str:
            return f"{await self.running()}, {await self.slots.query(ArrivalRuns.slots)}"

        await until(reached, present)


@pytest.fixture
async def installation(client: Client, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Installation]:
    monkeypatch.setattr("workflows.arrivals.arrival_runs._CHECK", timedelta(seconds=1))
    monkeypatch.setattr("workflows.arrivals.zone_runs._REPEAT", 0.0)
    installation = Installation(client)
    listings = installation.listings
    reporting = ReportArrivalRunsActivity(client, installation.name, installation.name, 2)
    ended = FindEndedWorkflowsActivity(RunningWorkflows(client, asyncio.get_running_loop()))
    threads = ThreadPoolExecutor(4)
    async with Worker(
        client,
        task_queue=installation.name,
        workflows=[LandingZone, RunOfATest, ArrivalRuns],
        workflow_runner=UnsandboxedWorkflowRunner(),
        interceptors=[ErrorMapping()],
        activities=[
            *(listings.collect, listings.read, listings.split, listings.notify),
            *(reporting.report_arrival_runs, ended.find_ended_workflows),
        ],
        activity_executor=threads,
    ):
        yield installation
        for zone in installation.zones.values():
            await zone.handle.terminate()
        with suppress(RPCError):  # it has ended already
            await installation.slots.terminate()


async def test_all_zones_together_have_so_many_runs_and_the_oldest_batches_first(installation: Installation) -> None:
    busy = await installation.zone("busy", "b1", "b2", "b3", "b4", since=100)
    await installation.until(lambda now: now == {"b1", "b2"})
    old = await installation.zone("old", "o1", since=1)
    await busy.end("b2", "published")
    await installation.until(lambda now: now == {"b1", "o1"})
    await busy.end("b1", "published")
    await installation.until(lambda now: now == {"b3", "o1"})
    await old.end("o1", "quarantined")
    await busy.end("b3", "failed", reason="no such column")
    await installation.until(lambda now: now == {"b4"})
    await busy.end("b4", "published")
    await installation.until(lambda now: not now)
    replayer = Replayer(
        workflows=[LandingZone, ArrivalRuns], workflow_runner=UnsandboxedWorkflowRunner(), data_converter=converter({})
    )
    for handle in (busy.handle, installation.slots):
        await replayer.replay_workflow(await handle.fetch_history())


async def test_zones_that_are_removed_terminated_or_paused_hold_up_no_other(installation: Installation) -> None:
    first = await installation.zone("first", "f1", "f2")
    await installation.until(lambda now: now == {"f1", "f2"})
    removed = await installation.zone("removed", "r1", since=1)
    terminated = await installation.zone("terminated", "t1", since=2)
    paused = await installation.zone("paused", "p1", since=3)
    await installation.zone("last", "l1", since=1000)

    async def wanted() -> int:
        return sum(len(zone.wanted) for zone in (await installation.slots.query(ArrivalRuns.slots)).zones)

    while await wanted() < 4:
        await asyncio.sleep(0.1)
    await removed.handle.cancel()
    await terminated.handle.terminate()
    await paused.handle.execute_update(LandingZone.pause, PauseZone(paused=True, by="ana"))
    for name in ("removed", "terminated"):
        del installation.zones[name]
    await first.end("f1", "published")
    await installation.until(lambda now: now == {"f2", "l1"})
    await paused.handle.execute_update(LandingZone.pause, PauseZone(paused=False, by="ana"))
    await first.end("f2", "published")
    await installation.until(lambda now: now == {"p1", "l1"})


async def test_the_runs_of_a_zone_that_vanished_have_their_slots_until_they_end(installation: Installation) -> None:
    zone = await installation.zone("zone", "a", "b")
    run, other = await zone.run_of("a"), await zone.run_of("b")
    await zone.handle.terminate()
    del installation.zones["zone"]
    await installation.zone("next", "c", "d")
    await asyncio.sleep(3)
    assert await installation.running() == set()
    await run.terminate()  # nobody gets its report
    await installation.until(lambda now: now == {"c"})
    await other.terminate()
    await installation.until(lambda now: now == {"c", "d"})


async def test_slots_that_are_ended_by_force_are_learnt_from_reports(installation: Installation) -> None:
    zone = await installation.zone("zone", "a", "b", "c")

    async def both_are_known() -> bool:
        with suppress(RPCError):  # the test ended it
            zones = (await installation.slots.query(ArrivalRuns.slots)).zones
            return [len(each.running) for each in zones] == [2]
        return False

    async def until_both_are_known() -> None:
        await until(both_are_known, lambda: "the slots are not known")

    await until_both_are_known()
    await installation.slots.terminate()
    await zone.handle.signal(LandingZone.look)
    await until_both_are_known()
    assert await installation.running() == {"a", "b"}
    await zone.end("a", "published")
    await installation.until(lambda now: now == {"b", "c"})


async def test_landing_zones_of_a_queue_without_a_worker_stop_no_others(installation: Installation) -> None:
    left = ReportArrivalRunsActivity(installation.client, installation.name, f"{installation.name}-left", 2)
    await left.report_arrival_runs(ZoneRuns(zone="left", at=0, answered=0, running=["run-1", "run-2"]))
    await installation.zone("zone", "a")
    await installation.until(lambda now: now == {"a"})
    unserved = arrival_runs_id(installation.name, left.task_queue)
    await installation.client.get_workflow_handle(unserved).terminate()


async def test_slots_that_continue_as_new_again_and_again_are_kept(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ArrivalRuns, "_is_full", lambda _: workflow.info().get_current_history_length() > 15)
    names = [f"z{number}" for number in range(4)]
    for number, name in enumerate(names):
        await installation.zone(name, f"{name}-a", f"{name}-b", at_once=1, since=10.0 * number)
    for name in names:
        for each in ("a", "b"):
            await installation.until(partial(_has, f"{name}-{each}"))
            await installation.zones[name].end(f"{name}-{each}", "published")
    await installation.until(lambda now: not now)
    described = await installation.slots.describe()
    first = await installation.client.get_workflow_handle(
        described.id, run_id=described.raw_info.first_run_id
    ).describe()
    assert first.status == WorkflowExecutionStatus.CONTINUED_AS_NEW
