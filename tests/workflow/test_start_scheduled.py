"""Starts by a Temporal schedule: for their time, under the run's own identity; failures are reported and pause it."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import (
    Client,
    ScheduleHandle,
    ScheduleOverlapPolicy,
    WorkflowExecutionStatus,
    WorkflowHandle,
)
from temporalio.worker import Worker

from activities.errors import ErrorMapping
from activities.run.cancel_started_runs import CancelStartedRunsActivity
from activities.run.find_run_end import FindRunEndActivity
from activities.run.prepare_run import PrepareRunActivity
from activities.schedules.inspect_schedule import InspectScheduleActivity
from activities.schedules.pause_schedule import PauseScheduleActivity
from lakehouse.arrivals.batch_store import BatchStore
from runtime.schedules.deployed_schedules import make_schedule
from runtime.schedules.pausing import pause_schedule
from sluice.contracts.schedules import (
    ENDED_MEMO,
    MISSED_MEMO,
    InspectScheduleInput,
    ScheduledStart,
    ScheduleNotice,
    StartScheduledInput,
)
from sluice.contracts.selected_input import SelectedInput
from sluice.contracts.starting import PipelineText
from sluice.identifiers import schedule_id
from sluice.notifications.message import message_of_schedule
from sluice.notifications.slack import slack_text
from sluice.pipeline.schedule import Schedule
from sluice.settings import Settings
from tests.harness.waiting import in_time, until
from tests.harness.workflow import MANIFEST, FakeActivities, fails_for_good
from workflows.run.start_pipeline import StartPipeline
from workflows.sandbox import sandbox
from workflows.schedules.start_scheduled import StartScheduled
from workflows.write_audit_publish import WriteAuditPublish

FILE = """\
name: {name}
write:
  source: {{path: "{{{{ scheduled_for.year }}}}.csv"}}
tables: [t.x]
"""


class Scheduled:
    """A schedule of one pipeline file, which fires only when it is triggered."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client, self.folder = client, folder
        self.name, self.queue = f"p-{uuid.uuid4().hex[:8]}", str(uuid.uuid4())
        self.fakes, self.notices = FakeActivities(), list[ScheduleNotice]()
        self.id = schedule_id("here", self.name)
        self.inspecting, self.go_on = asyncio.Event(), asyncio.Event()
        self.go_on.set()

    async def make(self, **more: Any) -> ScheduleHandle:
        stated = Schedule.model_validate({"cron": "0 0 29 2 *", "zone": "Pacific/Kiritimati", **more})
        given = StartScheduledInput(
            installation="here",
            name=self.name,
            pipeline=PipelineText(name="p.yml", text=FILE.format(name=self.name), folder=str(self.folder)),
            zone=stated.zone,
            pause_on_failure=stated.pause_on == "failure",
        )
        return await self.client.create_schedule(self.id, make_schedule(stated, given, self.queue))

    async def trigger(self, schedule: ScheduleHandle, number: int = 1) -> WorkflowHandle[Any, Any]:
        """Have the schedule start its workflow; wait for its end."""
        await schedule.trigger()

        async def started() -> bool:
            return len((await schedule.describe()).info.recent_actions) >= number

        await until(started)
        action: Any = (await schedule.describe()).info.recent_actions[-1].action
        handle = self.client.get_workflow_handle(action.workflow_id)

        async def ended() -> bool:
            return (await handle.describe()).status != WorkflowExecutionStatus.RUNNING

        await until(ended)
        return handle

    @activity.defn(name="inspect_schedule")
    async def inspect_schedule(self, input: InspectScheduleInput) -> ScheduledStart:
        self.inspecting.set()
        await self.go_on.wait()
        return await InspectScheduleActivity(self.client).inspect_schedule(input)

    @activity.defn(name="notify_schedule")
    async def notify_schedule(self, notice: ScheduleNotice) -> None:
        self.notices.append(notice)


@pytest.fixture
async def scheduled(client: Client, tmp_path: Path) -> AsyncIterator[Scheduled]:
    scheduled = Scheduled(client, tmp_path)
    settings = Settings.of(sluice_task_queue=scheduled.queue)
    of_runs = scheduled.fakes.activities()
    control = Worker(
        client,
        task_queue=scheduled.queue,
        workflows=[StartScheduled, StartPipeline, WriteAuditPublish],
        workflow_runner=sandbox(),
        interceptors=[ErrorMapping()],
        activities=[
            *of_runs,
            PrepareRunActivity(client, settings, BatchStore("file:///nowhere", {})).prepare_run,
            FindRunEndActivity(client).find_run_end,
            CancelStartedRunsActivity(client).cancel_started_runs,
            scheduled.inspect_schedule,
            PauseScheduleActivity(client).pause_schedule,
            scheduled.notify_schedule,
        ],
        max_heartbeat_throttle_interval=timedelta(milliseconds=100),
    )
    async with (
        control,
        Worker(client, task_queue=settings.installation.spark_queue, interceptors=[ErrorMapping()], activities=of_runs),
    ):
        yield scheduled
        await client.get_schedule_handle(scheduled.id).delete()


async def test_the_note_of_a_pause_counts_the_starts_that_wait_for_the_run(scheduled: Scheduled) -> None:
    scheduled.go_on.clear()
    schedule = await scheduled.make(overlap="buffer_all")

    async def counts(running: int, waiting: int) -> bool:
        described = await schedule.describe()
        return (len(described.info.running_actions), described.raw_description.info.buffer_size) == (running, waiting)

    for waiting in (0, 1):
        await schedule.trigger(overlap=ScheduleOverlapPolicy.BUFFER_ALL)
        await until(partial(counts, 1, waiting))
    noted = await pause_schedule(schedule, "why")
    assert noted.startswith("why; 1 start waiting for the present run, and discarded if that run ends during the pause")
    assert (await schedule.describe()).schedule.state.note == noted
    scheduled.go_on.set()
    await until(partial(counts, 0, 0))


async def test_a_start_that_is_cancelled_before_its_run_starts_none(scheduled: Scheduled) -> None:
    """`overlap: cancel_other` does so: the query about the schedule completes in spite of the cancel."""
    files_of_years(scheduled.folder)
    scheduled.go_on.clear()
    triggered = asyncio.create_task(scheduled.trigger(await scheduled.make()))
    await scheduled.inspecting.wait()

    async def action() -> str:
        (started,) = (await scheduled.client.get_schedule_handle(scheduled.id).describe()).info.running_actions
        return started.workflow_id  # type: ignore[attr-defined, no-any-return]

    await scheduled.client.get_workflow_handle(await action()).cancel()
    await asyncio.sleep(1)
    scheduled.go_on.set()
    handle = await triggered
    assert (await handle.describe()).status == WorkflowExecutionStatus.CANCELED
    assert not [each async for each in scheduled.client.list_workflows(f"WorkflowId = '{handle.id}-start'")]


def files_of_years(folder: Path) -> None:
    for year in range(2024, 2050):
        (folder / f"{year}.csv").write_text("id\n1\n")


async def test_a_start_runs_the_pipeline_for_its_time_under_the_identity_of_the_run(scheduled: Scheduled) -> None:
    files_of_years(scheduled.folder)
    schedule = await scheduled.make(pause_on="failure")
    handle = await scheduled.trigger(schedule)
    described, ended = await handle.describe(), await handle.result()
    memo = await described.memo()
    assert (ended["outcome"], memo[ENDED_MEMO]) == ("published", ended)
    assert ended["workflow_id"].startswith(f"{scheduled.name}-") and ended["workflow_id"] != handle.id
    assert ended["key"].endswith("+14:00"), "the time is in the zone of the schedule"
    assert memo[MISSED_MEMO] == {"late": 0, "overlapping": 0}
    request = await anext(
        e async for e in scheduled.client.get_workflow_handle(ended["workflow_id"]).fetch_history_events()
    )
    assert f"schedule {scheduled.name}" in str(request.workflow_execution_started_event_attributes.input)
    state = (await schedule.describe()).schedule.state
    assert (state.paused, scheduled.notices) == (False, [])


async def test_a_run_that_fails_pauses_its_schedule_and_people_are_told(scheduled: Scheduled) -> None:
    files_of_years(scheduled.folder)
    scheduled.fakes.overrides["open_branch"] = fails_for_good
    schedule = await scheduled.make(pause_on="failure")
    handle = await scheduled.trigger(schedule)
    assert (await handle.describe()).status == WorkflowExecutionStatus.FAILED
    state = (await schedule.describe()).schedule.state
    assert state.paused and state.note
    assert state.note.startswith(f"paused because run {scheduled.name}-") and "failed: it is wrong" in state.note
    [notice] = scheduled.notices
    assert notice.paused and f"it is paused until `resume {scheduled.name}`" in slack_text(message_of_schedule(notice))


async def test_without_pause_on_the_schedule_goes_on_and_a_refused_start_is_told(scheduled: Scheduled) -> None:
    schedule = await scheduled.make()
    handle = await scheduled.trigger(schedule)
    memo = await (await handle.describe()).memo()
    assert memo[ENDED_MEMO]["outcome"] == "refused"
    assert not (await schedule.describe()).schedule.state.paused
    [notice] = scheduled.notices
    assert not notice.paused and "its run was not started: there are no files at" in slack_text(
        message_of_schedule(notice)
    )
    assert scheduled.fakes.calls == []


async def test_starts_that_did_not_happen_are_told_once(scheduled: Scheduled) -> None:
    files_of_years(scheduled.folder)
    entered, may_go_on = asyncio.Event(), asyncio.Event()

    async def held(_: Any, __: int) -> bool:
        entered.set()
        await may_go_on.wait()
        return False

    scheduled.fakes.overrides["can_notify"] = held
    schedule = await scheduled.make(overlap="skip")
    await schedule.trigger()
    await in_time(entered.wait())
    await schedule.trigger()  # the previous run has not ended

    async def skipped() -> bool:
        return (await schedule.describe()).info.num_actions_skipped_overlap == 1

    async def idle() -> bool:
        return not (await schedule.describe()).info.running_actions

    await until(skipped)
    may_go_on.set()
    await until(idle)
    await scheduled.trigger(schedule, 2)
    await asyncio.sleep(1.1)  # so that the next start has another second, and another id
    await scheduled.trigger(schedule, 3)
    assert [notice.missed.model_dump() for notice in scheduled.notices] == [{"late": 0, "overlapping": 1}]
    assert "1 because the previous run had not ended" in slack_text(message_of_schedule(scheduled.notices[0]))


async def test_cancel_other_cancels_the_run_and_not_only_what_waits_for_it(scheduled: Scheduled) -> None:
    files_of_years(scheduled.folder)
    entered = asyncio.Event()

    async def waits_once(_: Any, call: int) -> Any:
        if call == 1:
            entered.set()
            while True:
                activity.heartbeat()
                await asyncio.sleep(0.1)
        return SelectedInput(manifest=MANIFEST, files=1)

    scheduled.fakes.overrides["select_input"] = waits_once
    schedule = await scheduled.make(overlap="cancel_other", pause_on="failure")
    await schedule.trigger()
    await in_time(entered.wait())
    await asyncio.sleep(1.1)  # so that the next start has another second, and another id
    handle = await scheduled.trigger(schedule, 2)
    assert (await handle.result())["outcome"] == "published"
    states: list[str] = []

    async def both_ended() -> bool:
        runs = scheduled.client.list_workflows(f'WorkflowId STARTS_WITH "{scheduled.name}-"')
        states[:] = sorted([run.status.name async for run in runs if run.status])
        return "RUNNING" not in states and len(states) == 2

    await until(both_ended)
    assert states == ["CANCELED", "COMPLETED"]
    assert not (await schedule.describe()).schedule.state.paused
