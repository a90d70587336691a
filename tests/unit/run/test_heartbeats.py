"""Heartbeats for every activity: a loss is noticed soon, and an activity notices that Temporal gave it up."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio import activity
from temporalio.exceptions import CancelledError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ActivityOutboundInterceptor, ExecuteActivityInput

import activities.errors
import activities.heartbeats
from activities.errors import as_application_error, overdue
from activities.heartbeats import Heartbeats
from tests.harness.processes import wait_for
from tests.harness.waiting import until


class Outbound(ActivityOutboundInterceptor):
    """A recorder of heartbeats."""

    def __init__(self) -> None:
        self.sent: list[Sequence[Any]] = []

    def heartbeat(self, *details: Any) -> None:
        self.sent.append(details)


class Execution(ActivityInboundInterceptor):
    """The innermost interceptor: it runs an activity, a plain function in a thread."""

    def __init__(self) -> None:
        self.heartbeat: Any = None

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        self.heartbeat = outbound.heartbeat

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        if asyncio.iscoroutinefunction(input.fn):
            return await input.fn(*input.args)
        return await asyncio.to_thread(input.fn, *input.args)


def run(function: Any, timeout: float | None, outbound: Outbound | None = None) -> tuple[Any, list[Sequence[Any]]]:
    """Run an activity under the interceptor; return its result and the heartbeats that were sent."""
    environment, outbound, execution = ActivityEnvironment(), outbound or Outbound(), Execution()
    limit = timedelta(seconds=timeout) if timeout else None
    environment.info = replace(environment.info, heartbeat_timeout=limit)

    async def execute() -> Any:
        kept_alive = Heartbeats().intercept_activity(execution)
        kept_alive.init(outbound)
        arguments = [execution.heartbeat] if asyncio.iscoroutinefunction(function) else []
        return await kept_alive.execute_activity(ExecuteActivityInput(function, arguments, ThreadPoolExecutor(1), {}))

    return asyncio.run(environment.run(execute)), outbound.sent


def test_an_activity_in_a_thread_is_kept_alive() -> None:
    outbound = Outbound()

    def wait() -> str:
        wait_for(lambda: len(outbound.sent) >= 4)
        return "done"

    assert run(wait, timeout=0.4, outbound=outbound)[0] == "done"


def test_an_activity_without_a_heartbeat_time_out_sends_none() -> None:
    assert run(lambda: "done", timeout=None) == ("done", [])


def test_what_an_activity_reported_last_is_repeated() -> None:
    outbound = Outbound()

    async def reports(heartbeat: Any) -> None:
        heartbeat("writing")
        await until(lambda: len(outbound.sent) >= 3)

    _, sent = run(reports, timeout=0.4, outbound=outbound)
    assert sent[-1] == ("writing",)


@pytest.mark.parametrize(("seconds", "given_up"), [(40, False), (60, True)])
def test_an_activity_that_temporal_gave_up_knows_it(seconds: float, given_up: bool) -> None:
    """After a pause of the process without heartbeats, its branch may have been published already."""

    def opening() -> bool:
        with as_application_error(), pytest.MonkeyPatch.context() as clock:
            later = SimpleNamespace(monotonic=lambda: time.monotonic() + seconds)
            clock.setattr(activities.heartbeats, "time", later)
            return overdue()

    assert run(opening, timeout=50)[0] is given_up


def test_the_start_of_an_activity_is_not_that_of_a_later_one() -> None:
    """A later activity without the mapping of errors, in the same context, deleted its branch as overdue for ever."""

    def later() -> bool:
        with pytest.MonkeyPatch.context() as clock:
            clock.setattr(activities.errors, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 10**6))
            return overdue()

    def both() -> bool:
        with as_application_error():
            pass
        return later()

    assert not run(both, timeout=None)[0]


@pytest.mark.parametrize("timeout", [None, 5.0])
def test_an_error_is_passed_on(timeout: float | None) -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run(fail, timeout)


def test_a_cancellation_does_not_interrupt_what_has_begun_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """It arrives after the end of the work, whose result is kept."""

    @contextmanager
    def shield() -> Iterator[None]:
        yield
        raise CancelledError("cancelled meanwhile")

    monkeypatch.setattr(activity, "shield_thread_cancel_exception", shield)
    assert run(lambda: "merged", timeout=5)[0] == "merged"
