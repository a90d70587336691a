"""Schedules: the reaper's, which every worker registers at its start, and the starts that a schedule missed."""

from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
)
from temporalio.service import RPCError, RPCStatusCode

from runtime.schedules import list_schedules
from runtime.schedules.schedules import register_reaper
from sluice.contracts.schedules import MISSED_MEMO, MissedStarts, StartScheduledInput
from sluice.contracts.starting import PipelineText
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


class PastStart:
    """A client of a server that has the last start of a schedule, which recorded one missed start; or forgot it."""

    def __init__(self, memo: dict[str, Any] | None) -> None:
        self._memo = memo
        self.status = None

    def get_workflow_handle(self, *_: Any, **__: Any) -> "PastStart":
        return self

    async def describe(self) -> "PastStart":
        if self._memo is None:
            raise RPCError("not found", RPCStatusCode.NOT_FOUND, b"")
        return self

    async def memo(self) -> dict[str, Any]:
        return self._memo or {}


@pytest.mark.parametrize(
    ("memo", "missed"),
    [
        ({MISSED_MEMO: {"late": 1, "overlapping": 0}}, MissedStarts(late=2, overlapping=1)),
        ({}, MissedStarts()),
        (None, MissedStarts()),
    ],
)
async def test_starts_that_were_missed_after_the_last_one(
    memo: dict[str, Any] | None, missed: MissedStarts, monkeypatch: pytest.MonkeyPatch
) -> None:
    action = ScheduleActionExecutionStartWorkflow(workflow_id="w", first_execution_run_id="r")
    start = SimpleNamespace(action=action, scheduled_at=datetime(2026, 11, 22, tzinfo=timezone.utc))
    info = SimpleNamespace(
        recent_actions=[start], next_action_times=[], num_actions_missed_catchup_window=3, num_actions_skipped_overlap=1
    )
    schedule = SimpleNamespace(state=ScheduleState())
    given = StartScheduledInput(
        installation="here", name="orders", pipeline=PipelineText(name="", text="", folder=""), zone="UTC"
    )

    async def deployed(*_: Any) -> AsyncIterator[Any]:
        yield SimpleNamespace(info=info, schedule=schedule), given

    monkeypatch.setattr(list_schedules, "deployed_schedules", deployed)
    (listed,) = await list_schedules.list_schedules(cast(Client, PastStart(memo)), SETTINGS.installation)
    assert (listed.missed, listed.missed_since_last) == (MissedStarts(late=3, overlapping=1), missed)
