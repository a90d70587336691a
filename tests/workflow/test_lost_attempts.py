"""Attempts lost with workers and services do not count: for a day, the run repeats them and reports them as lost."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from activities.heartbeats import Heartbeats
from sluice.contracts.audit import SCAN_ATTEMPTS, AuditResult, ScanInput
from sluice.contracts.references import BranchRef
from sluice.contracts.run_request import Policy
from sluice.contracts.write import JobReport, OpenBranchInput, WriteTableInput
from tests.harness.workflow import FakeActivities, WorkflowHarness, opened
from workflows.sandbox import sandbox
from workflows.write_audit_publish import WriteAuditPublish

_SILENCE = 1.7
"""Silence of an attempt, in seconds. It exceeds the heartbeat time-out of these tests, one second."""


def away(message: str = "Nessie does not answer", kind: str = "ServiceUnavailable") -> ApplicationError:
    return ApplicationError(message, type=kind)


def fails(number_of_times: int, error: Exception, result: Any) -> Callable[[Any, int], Awaitable[Any]]:
    async def fail(_: Any, number: int) -> Any:
        if number <= number_of_times:
            raise error
        return result

    return fail


@pytest.mark.parametrize("reports_progress", [True, False])
async def test_an_attempt_that_fell_silent_is_lost(harness: WorkflowHarness, reports_progress: bool) -> None:
    """Its worker was killed, or paused while it still accepts tasks: no heartbeat arrives any more."""

    async def falls_silent(_: Any, number: int) -> JobReport:
        if number <= 4:
            if reports_progress:
                activity.heartbeat("begun")
            await asyncio.sleep(_SILENCE)
        return JobReport()

    harness.fakes.overrides["write_table"] = falls_silent
    result = await harness.end(await harness.start(policy=Policy(heartbeat_timeout=1), write=_one_attempt()))
    assert (result.outcome, result.attempts, result.lost_attempts) == ("published", 5, 4)


def _one_attempt() -> dict[str, Any]:
    return {"job": "job.py", "attempts": 1}


@pytest.mark.parametrize("step", ["write_table", "verify_write"])
async def test_a_service_that_is_away_during_the_write_does_not_count(harness: WorkflowHarness, step: str) -> None:
    branches: list[str] = []
    default = JobReport()

    async def unavailable(input: WriteTableInput, number: int) -> JobReport:
        branches.append(input.branch)
        if number <= 12:
            raise away()
        return default

    harness.fakes.overrides["write_table"] = unavailable
    result = await harness.end(await harness.start(write=_one_attempt()))
    assert (result.outcome, result.attempts, result.lost_attempts) == ("published", 13, 12)
    assert len(set(branches)) == 13, "each attempt has a branch of its own"
    assert harness.fakes.calls.count("discard_branch") == 13, "each lost attempt is fenced; the last one is published"


async def test_the_wait_is_shown_while_it_lasts(harness: WorkflowHarness) -> None:
    harness.fakes.overrides["write_table"] = fails(3, away(), JobReport())
    handle = await harness.start(write=_one_attempt())
    await harness.end(handle)
    status = await handle.query(WriteAuditPublish.status)
    notes = [event.note for event in status.events if "lost" in event.note]
    assert notes == [
        f"writing in attempt {n} was lost and does not count: Nessie does not answer. Retry in {delay} s"
        for n, delay in ((1, 1), (2, 2), (3, 4))
    ]
    assert status.result.lost_attempts == 3


async def test_what_the_job_does_wrong_counts_beside_what_is_lost(harness: WorkflowHarness) -> None:
    async def alternately(_: Any, number: int) -> JobReport:
        raise away() if number % 2 else away("it broke", "JobFailed")

    harness.fakes.overrides["write_table"] = alternately
    result = await harness.end(await harness.start(write={"job": "job.py", "attempts": 3}))
    assert (result.outcome, result.cause, result.attempts, result.lost_attempts) == ("failed", "error", 6, 3)
    assert result.reason == "it broke"


@pytest.mark.parametrize(("kind", "cause"), [("ServiceUnavailable", "unreachable"), ("WorkerShutdown", "error")])
async def test_when_losses_go_on_for_too_long_the_run_ends_and_says_so(
    harness: WorkflowHarness, kind: str, cause: str
) -> None:
    harness.fakes.overrides["write_table"] = fails(10**6, away("gone", kind), None)
    result = await harness.end(await harness.start(policy=Policy(wait_timeout=900, step_timeout=600)))
    assert (result.outcome, result.cause) == ("failed", cause)
    assert "lost with their workers or services, for longer than 0:15:00, or so many" in result.reason
    assert 900 - 120 <= result.timings["total"] <= 900 + 120
    assert result.lost_attempts > 10


async def test_without_a_spark_worker_the_run_waits_and_then_says_so(harness: WorkflowHarness) -> None:
    policy = Policy(spark_queue="nobody-takes-from-it", wait_timeout=2)  # time is not skipped while a task waits
    result = await harness.end(await harness.start(policy=policy))
    assert (result.outcome, result.attempts) == ("failed", 1)
    assert result.reason == "no worker started write_table in time: check that one runs for its task queue"
    assert result.timings["writing"] >= 1.5


async def test_where_attempts_cannot_be_fenced_a_lost_one_is_not_repeated(harness: WorkflowHarness) -> None:
    """Its job may still write to the branch. No second job may, whatever the cause of the loss."""

    async def open_without_fence(input: OpenBranchInput, _: int) -> BranchRef:
        return opened(input.run_ref.branch).model_copy(update={"can_be_fenced": False})

    harness.fakes.overrides |= {"open_branch": open_without_fence, "write_table": fails(1, away(), JobReport())}
    result = await harness.end(await harness.start(write=_one_attempt()))
    assert (result.outcome, result.cause, result.attempts) == ("failed", "unreachable", 1)


async def test_a_run_whose_shared_server_crashed_runs_apart_from_then_on(harness: WorkflowHarness) -> None:
    apart: list[bool] = []

    async def crash_when_shared(input: WriteTableInput, _: int) -> JobReport:
        apart.append(input.runs_apart)
        raise away("exit code 3", "JobFailed") if input.runs_apart else away("the server ended", "SparkServerCrashed")

    harness.fakes.overrides["write_table"] = crash_when_shared
    result = await harness.end(await harness.start(write={"job": "job.py", "attempts": 2}))
    assert apart == [False, True, True], "it crashes the server of the others once, and then uses up its own attempts"
    assert (result.outcome, result.attempts, result.lost_attempts) == ("failed", 3, 1)


async def test_a_scan_that_is_lost_is_made_again_and_does_not_count(harness: WorkflowHarness) -> None:
    tries: list[tuple[int, bool]] = []

    async def needs_a_scan(_: Any, __: int) -> AuditResult:
        return AuditResult(decided=[], undecided={"t.x": [0]})

    async def scan(input: Any, number: int) -> AuditResult:
        given = ScanInput.model_validate(input)
        tries.append((given.try_number, given.is_last_try))
        if number <= 2 * SCAN_ATTEMPTS:
            raise away()
        if number < 3 * SCAN_ATTEMPTS:
            raise away("it broke", "JobFailed")
        return AuditResult(decided=[])

    harness.fakes.overrides |= {"audit_branch": needs_a_scan, "scan_branch": scan}
    result = await harness.end(await harness.start())
    assert (result.outcome, result.attempts, result.lost_attempts) == ("published", 1, 0)
    assert [number for number, _ in tries] == list(range(1, 3 * SCAN_ATTEMPTS + 1)), "each try has a number of its own"
    assert [is_last for _, is_last in tries] == [*[False] * (3 * SCAN_ATTEMPTS - 1), True]


async def test_opening_waits_for_a_catalog_that_is_away_for_seconds_at_a_time(harness: WorkflowHarness) -> None:
    async def flaps(input: OpenBranchInput, number: int) -> BranchRef:
        if number <= 8:
            raise away()
        return opened(input.run_ref.branch)

    harness.fakes.overrides["open_branch"] = flaps
    result = await harness.end(await harness.start(policy=Policy(open_timeout=60)))
    assert (result.outcome, result.attempts) == ("published", 1)


async def test_only_a_local_try_is_refused_for_the_age_of_its_task(harness: WorkflowHarness) -> None:
    """The server gives an activity to one worker only, so the activity may start late."""
    requested: list[float] = []

    async def note(input: OpenBranchInput, number: int) -> BranchRef:
        requested.append(input.requested_at)
        if number == 1:
            raise away()
        return opened(input.run_ref.branch)

    harness.fakes.overrides["open_branch"] = note
    assert (await harness.end(await harness.start())).outcome == "published"
    assert requested[0] > 10**9 and requested[1:] == [0.0]


async def test_opening_gives_up_when_the_catalog_stays_away(harness: WorkflowHarness) -> None:
    harness.fakes.overrides["open_branch"] = fails(10**6, away(), None)
    result = await harness.end(await harness.start(policy=Policy(open_timeout=60)))
    assert (result.outcome, result.cause) == ("failed", "unreachable")
    assert 50 <= result.timings["opening"] <= 75


@pytest.mark.slow
async def test_opening_outlasts_lost_workers(harness: WorkflowHarness) -> None:
    """A try that is lost with its worker proves nothing about the catalog, and does not count against its time."""

    async def falls_silent(input: OpenBranchInput, number: int) -> BranchRef:
        if number <= 3:
            await asyncio.sleep(6 if number % 2 else _SILENCE)  # a local try may last five seconds
        return opened(input.run_ref.branch)

    harness.fakes.overrides["open_branch"] = falls_silent
    result = await harness.end(await harness.start(policy=Policy(open_timeout=3, heartbeat_timeout=1)))
    assert (result.outcome, result.attempts) == ("published", 1)


async def test_a_short_activity_is_kept_alive_by_its_worker(time_skipping: WorkflowEnvironment) -> None:
    """An activity that sends no heartbeats does not count as lost while its worker lives."""
    harness = WorkflowHarness(time_skipping.client, FakeActivities())

    async def slow(_: Any, number: int) -> AuditResult:
        assert number == 1, "it was taken for lost"
        await asyncio.sleep(4.5)
        return AuditResult(decided=[])

    harness.fakes.overrides["audit_branch"] = slow
    async with Worker(
        time_skipping.client,
        task_queue=harness.queue,
        workflows=[WriteAuditPublish],
        workflow_runner=sandbox(),
        activities=harness.fakes.activities(),
        interceptors=[Heartbeats()],
        max_heartbeat_throttle_interval=timedelta(milliseconds=100),
    ):
        result = await harness.end(await harness.start(policy=Policy(heartbeat_timeout=3)))
    assert result.outcome == "published"
