"""Registrations after the merge: retried for a day, one after the other, without effect on the run's outcome."""

import asyncio
import base64
import os
import uuid
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from temporalio import activity
from temporalio.client import WorkflowExecutionStatus, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from activities.errors import ErrorMapping
from activities.notifications.notify import NotifyActivities
from activities.notifications.open_notifier import open_notifier
from activities.registration.register_publication import RegisterPublicationActivity
from activities.registration.start_registrations import StartRegistrationsActivity
from lakehouse.targets.mirror import MirrorWriter
from sluice.contracts.registration import (
    FailedRegistration,
    PublicationEvent,
    RegisterInput,
    Registration,
    StartRegistrationsInput,
    WaitingRun,
)
from sluice.contracts.run_request import Policy
from sluice.contracts.table_changes import TableChange
from sluice.registration.target_kinds import CommandTarget, SecretSource, WebhookTarget
from sluice.registration.targets import Targets
from sluice.settings import Settings
from tests.harness.http_receiver import HttpReceiver
from tests.harness.slack import Slack
from tests.harness.workflow import WorkflowHarness
from workflows.registration.register_publication import RegisterPublication
from workflows.sandbox import sandbox

DAY = 24 * 3600.0
EVENT = PublicationEvent(run_id="r1", workflow_id="p-1", pipeline="p", published_at="2026-11-23T12:00:00+00:00")


class FakeTarget:
    """A target that answers as the test says, and counts the tries and the notifications."""

    def __init__(self) -> None:
        self.tries = 0
        self.fails: Any = lambda number: None
        self.failures: list[FailedRegistration] = []
        self.began, self.may_end = asyncio.Event(), asyncio.Event()
        self.may_end.set()

    @activity.defn(name="register_publication")
    async def register(self, input: RegisterInput) -> str:
        self.tries += 1
        number = self.tries
        self.began.set()
        await self.may_end.wait()
        if why := self.fails(number):
            raise why
        return f"try {number}"

    @activity.defn(name="notify_registration")
    async def notify(self, input: FailedRegistration) -> None:
        self.failures.append(input)
        raise ApplicationError("Slack is away", type="SlackRefused", non_retryable=True)


class Registrations:
    """A worker for registrations, and the activity that starts them."""

    def __init__(self, environment: WorkflowEnvironment, target: FakeTarget) -> None:
        self.environment, self.target, self.queue = environment, target, str(uuid.uuid4())
        self.client = environment.client
        known = Targets(targets={"announce": CommandTarget(kind="command", command=["/bin/true"])})
        self.activity = StartRegistrationsActivity(self.client, known, self.queue, self.queue)

    def handle(self, registration: Registration) -> WorkflowHandle[RegisterPublication, Registration]:
        return self.client.get_workflow_handle_for(RegisterPublication.run, registration.workflow_id)

    async def start_table(self, table: str = "t.x") -> WorkflowHandle[RegisterPublication, Registration]:
        run = WaitingRun(workflow_id="a run that ended", run_id=str(uuid.uuid4()))
        return self.handle(await self.activity.start_table("mirror", table, run))

    async def end(self, handle: WorkflowHandle[RegisterPublication, Registration]) -> Registration:
        """Skip time until a registration has ended; return its final state."""
        while (await handle.describe()).status == WorkflowExecutionStatus.RUNNING:
            await self.environment.sleep(600)
        return await handle.result()


@pytest.fixture
async def registrations(own_time_skipping: WorkflowEnvironment) -> AsyncIterator[Registrations]:
    target = FakeTarget()
    harness = Registrations(own_time_skipping, target)
    async with Worker(
        harness.client,
        task_queue=harness.queue,
        workflows=[RegisterPublication],
        workflow_runner=sandbox(),
        interceptors=[ErrorMapping()],
        activities=[target.register, target.notify],
    ):
        yield harness


async def test_a_target_that_fails_for_hours_is_registered_in_the_end(registrations: Registrations) -> None:
    registrations.target.fails = lambda number: RuntimeError(f"answered 500 ({number})") if number < 30 else None
    ended = await registrations.end(await registrations.start_table())
    assert (ended.state, ended.reason, registrations.target.tries) == ("done", "try 30", 30)
    assert registrations.target.failures == []


async def test_a_target_that_is_down_for_a_day_fails_and_people_are_told_once(registrations: Registrations) -> None:
    registrations.target.fails = lambda number: RuntimeError("does not answer: password=hunter2hunter2")
    handle = await registrations.start_table()
    ended = await registrations.end(handle)
    assert ended.state == "failed" and "does not answer" in ended.reason and "hunter2" not in ended.reason
    (failure,) = registrations.target.failures
    assert (failure.registration, failure.pipeline, failure.tables) == (ended, "", ["t.x"])
    description = await handle.describe()
    assert description.close_time is not None
    took = (description.close_time - description.start_time).total_seconds()
    assert 0.9 * DAY < took < 1.1 * DAY
    assert 100 < registrations.target.tries < 200
    again = await registrations.end(await registrations.start_table())  # the next publication tries again
    assert again.state == "failed" and len(registrations.target.failures) == 2


async def test_people_are_not_notified_of_what_only_the_schedule_asked(registrations: Registrations) -> None:
    registrations.target.fails = lambda number: ApplicationError("another table", non_retryable=True)
    started = await registrations.activity.start_table("mirror", "t.x", WaitingRun())
    assert (await registrations.end(registrations.handle(started))).state == "failed"
    assert registrations.target.failures == []


async def test_what_no_retry_mends_fails_at_once(registrations: Registrations) -> None:
    refused = ApplicationError("wants no more", type="RegistrationRefused", non_retryable=True)
    registrations.target.fails = lambda number: refused
    ended = await registrations.end(await registrations.start_table())
    assert (ended.state, ended.reason, registrations.target.tries) == ("failed", "wants no more", 1)


async def test_the_message_of_a_publication_that_was_not_sent_names_its_tables(registrations: Registrations) -> None:
    registrations.target.fails = lambda number: ApplicationError("wants no more", non_retryable=True)
    event = EVENT.model_copy(update={"tables": {name: TableChange(operation="append") for name in ("t.y", "t.x")}})
    run = WaitingRun(workflow_id="a run that ended", run_id=str(uuid.uuid4()))
    request = StartRegistrationsInput(event=event, targets=["announce"])
    started = await registrations.activity.start_event("announce", request, run)
    assert (await registrations.end(registrations.handle(started))).state == "failed"
    (failure,) = registrations.target.failures
    assert (failure.pipeline, failure.tables) == ("p", ["t.x", "t.y"])


async def test_a_failed_registration_is_a_line_on_slack(own_time_skipping: WorkflowEnvironment) -> None:
    """The activities are the worker's real ones: the webhook refuses further events, and Slack fails at first."""
    client, queue, receiver = own_time_skipping.client, str(uuid.uuid4()), HttpReceiver()
    receiver.answer = lambda number: 410
    secret = SecretSource(env="HOOK")
    targets = Targets(targets={"hook": WebhookTarget(kind="webhook", url=f"{receiver.url}/h", secret=secret)})
    with Slack() as slack, pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as threads:
        patch.setenv("HOOK", "whsec_" + base64.b64encode(os.urandom(32)).decode())
        settings = Settings.of(slack_token="xoxb-1", slack_channel="#loads", slack_api_url=slack.url)
        starts = StartRegistrationsActivity(client, targets, queue, queue)
        activities: list[Any] = [
            RegisterPublicationActivity(targets, queue, cast(MirrorWriter, None)).register_publication,
            NotifyActivities(open_notifier(settings.notifications), "http://ui").notify_registration,
        ]
        slack.status, slack.answer = 500, {"ok": False, "error": "fatal_error"}
        async with Worker(
            client,
            task_queue=queue,
            workflows=[RegisterPublication],
            workflow_runner=sandbox(),
            interceptors=[ErrorMapping()],
            activities=activities,
            activity_executor=threads,
        ):
            request = StartRegistrationsInput(event=EVENT, targets=["hook"])
            started = await starts.start_event("hook", request, WaitingRun(workflow_id="p-1", run_id="r1"))
            handle = client.get_workflow_handle_for(RegisterPublication.run, started.workflow_id)
            while not slack.messages:
                await asyncio.sleep(0.05)
            slack.status, slack.answer = 200, {"ok": True}
            assert (await handle.result()).state == "failed"
    receiver.close()
    refused, sent = slack.messages
    assert refused["text"] == sent["text"] and sent["authorization"] == "Bearer xoxb-1"
    host = receiver.url.removeprefix("http://")
    assert (sent["channel"], sent["path"]) == ("#loads", "/api/chat.postMessage")
    assert sent["text"] == (
        f":warning: registration of a publication of p at hook failed: {host} answered 410: it wants no more events"
    )


async def test_publications_that_come_meanwhile_mean_one_more_look(registrations: Registrations) -> None:
    target = registrations.target
    target.may_end.clear()
    first = await registrations.start_table()
    await target.began.wait()
    others = [await registrations.start_table() for _ in range(5)]
    assert {each.id for each in others} == {first.id}
    target.may_end.set()
    assert (await registrations.end(first)).state == "done"
    assert target.tries == 2


async def test_a_new_publication_ends_the_wait_for_the_next_try(registrations: Registrations) -> None:
    registrations.target.fails = lambda number: RuntimeError("away") if number == 1 else None
    first = await registrations.start_table()
    await registrations.start_table()
    assert (await registrations.end(first)).state == "done"


async def test_tables_and_targets_do_not_wait_for_each_other(registrations: Registrations) -> None:
    one, other = await registrations.start_table("t.x"), await registrations.start_table("t.y")
    assert one.id != other.id
    assert [(await registrations.end(each)).table for each in (one, other)] == ["t.x", "t.y"]


async def test_a_target_is_told_of_a_publication_once(registrations: Registrations) -> None:
    """The activity that starts registrations may run twice, even after the registration has ended."""
    given = StartRegistrationsInput(event=EVENT, targets=["announce"])
    registrations.target.may_end.clear()
    (started,) = await registrations.activity.start_registrations(given)
    await registrations.target.began.wait()
    await registrations.activity.start_registrations(given)
    registrations.target.may_end.set()
    assert (await registrations.end(registrations.handle(started))).state == "done"
    assert await registrations.activity.start_registrations(given) == [started]
    assert registrations.target.tries == 1


async def test_each_publication_is_an_event_of_its_own(registrations: Registrations) -> None:
    for run_id in ("r1", "r2"):
        event = EVENT.model_copy(update={"run_id": run_id})
        given = StartRegistrationsInput(event=event, targets=["announce"])
        (started,) = await registrations.activity.start_registrations(given)
        assert (await registrations.end(registrations.handle(started))).state == "done"
    assert registrations.target.tries == 2


async def test_a_target_that_the_installation_lost_is_failed(registrations: Registrations) -> None:
    given = StartRegistrationsInput(event=EVENT, targets=["lost"])
    (refused,) = await registrations.activity.start_registrations(given)
    assert refused.state == "failed" and "no such target" in refused.reason


async def _run(harness: WorkflowHarness, answer: Any, **request: Any) -> Any:
    harness.fakes.overrides["start_registrations"] = answer
    policy = Policy(registration_wait=2.0, spark_queue=harness.queue)
    handle = await harness.start(policy, **request)
    return handle, await harness.end(handle)


async def test_a_run_reports_what_is_pending_and_ends(harness: WorkflowHarness) -> None:
    async def never_ends(given: StartRegistrationsInput, _: int) -> list[Registration]:
        assert given.event.tables and given.event.main_after == "2" and given.targets == ["a"]
        return [Registration(target="a", workflow_id="nobody")]

    _, result = await _run(harness, never_ends, after_publish=["a"])
    assert result.outcome == "published"
    assert [each.state for each in result.registrations] == ["pending"]
    assert harness.fakes.calls.index("start_registrations") < harness.fakes.calls.index("record_run")


async def test_a_registration_that_ends_before_it_is_known_to_have_begun_is_reported(harness: WorkflowHarness) -> None:
    async def ends_at_once(given: StartRegistrationsInput, _: int) -> list[Registration]:
        run = harness.client.get_workflow_handle(given.event.workflow_id)
        ended = Registration(target="a", state="done", workflow_id="w")
        await run.signal("registration_ended", ended)
        return [ended.model_copy(update={"state": "pending"}), Registration(target="b", state="failed", reason="no")]

    _, result = await _run(harness, ends_at_once, after_publish=["a", "b"])
    assert [each.state for each in result.registrations] == ["done", "failed"]


async def test_registrations_that_cannot_be_started_do_not_change_the_outcome(harness: WorkflowHarness) -> None:
    async def fails(given: StartRegistrationsInput, _: int) -> list[Registration]:
        raise ApplicationError("a bug", type="KeyError", non_retryable=True)

    _, result = await _run(harness, fails, after_publish=["a"])
    assert (result.outcome, result.registrations[0].state) == ("published", "failed")
    assert "a bug" in result.registrations[0].reason


async def test_what_is_not_published_is_not_registered(harness: WorkflowHarness) -> None:
    async def unexpected(given: StartRegistrationsInput, _: int) -> list[Registration]:
        raise AssertionError

    handle = await harness.start(publish=False, after_publish=["a"])
    harness.fakes.overrides["start_registrations"] = unexpected
    assert (await harness.end(handle)).outcome == "checked"
    assert "start_registrations" not in harness.fakes.calls
