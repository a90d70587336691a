"""Repeated registration of the reaper's schedule, as every worker does at its start."""

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
)
from temporalio.service import RPCError, RPCStatusCode

from runtime.schedules.schedules import register_reaper
from sluice.identifiers import reaper_schedule_id
from sluice.settings import Settings

SETTINGS = Settings.of(sluice_installation="here", sluice_reap_every=60)


class FakeClient:
    """A client of a server that already has the schedule."""

    def __init__(self, present: Schedule | None) -> None:
        self.present, self.updated = present, cast(Schedule | None, None)

    async def create_schedule(self, *_: Any) -> None:
        raise ScheduleAlreadyRunningError

    def get_schedule_handle(self, _: str) -> "FakeClient":
        return self

    async def update(self, updater: Callable[[Any], ScheduleUpdate]) -> None:
        if self.present is None:
            raise RPCError("deleted meanwhile", RPCStatusCode.NOT_FOUND, b"")
        description = SimpleNamespace(schedule=self.present)
        self.updated = updater(SimpleNamespace(description=description)).schedule


async def test_a_paused_schedule_stays_paused_and_follows_the_settings() -> None:
    state = ScheduleState(paused=True, note="while we migrate")
    action = ScheduleActionStartWorkflow("Old", id="old", task_queue="old")
    client = FakeClient(Schedule(action=action, spec=ScheduleSpec(), state=state))
    await register_reaper(cast(Client, client), SETTINGS.installation, SETTINGS.reaper)
    assert client.updated and client.updated.state == state
    assert client.updated.spec.intervals[0].every == timedelta(seconds=60)
    assert cast(Any, client.updated.action).workflow == "ReapBranches"


async def test_a_schedule_that_is_deleted_meanwhile_stops_no_worker() -> None:
    await register_reaper(cast(Client, FakeClient(None)), SETTINGS.installation, SETTINGS.reaper)


def test_each_installation_has_a_schedule_of_its_own() -> None:
    assert reaper_schedule_id("here") == "sluice-reaper-here"
