"""Heartbeats for every activity, so that Temporal soon learns that a worker is lost, whatever it was doing.

An activity that reports no progress is kept alive by the worker's event loop. With heartbeats, Temporal also delivers
cancellations; one that has begun in a thread is not interrupted by that: it is short, and ends what it does.
"""

import asyncio
import functools
import inspect
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from temporalio import activity
from temporalio.exceptions import CancelledError
from temporalio.worker import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
)

_last_heartbeat: ContextVar[Callable[[], float]] = ContextVar("_last_heartbeat")
"""When the activity that runs in this thread sent its last heartbeat."""
_BEATS_IN_TIMEOUT = 4
"""So many heartbeats fit into the heartbeat time-out: some may come late."""


def missed_heartbeats() -> bool:
    """Return whether no heartbeat of this activity was sent in time, as after a pause: Temporal then gave it up."""
    timeout, at = activity.info().heartbeat_timeout, _last_heartbeat.get(None)
    return bool(timeout and at and time.monotonic() - at() > timeout.total_seconds())


class Heartbeats(Interceptor):
    """Sends heartbeats for each activity that has a heartbeat time-out."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Wrap the execution of an activity."""
        return _KeptAlive(next)


class _LastHeartbeat(ActivityOutboundInterceptor):
    """Remembers what the activity reported last, and when."""

    def __init__(self, next: ActivityOutboundInterceptor) -> None:
        super().__init__(next)
        self.details: tuple[Any, ...] = ()
        self.at = time.monotonic()

    def heartbeat(self, *details: Any) -> None:
        """Send a heartbeat of the activity itself."""
        self.details, self.at = details, time.monotonic()
        super().heartbeat(*details)


class _KeptAlive(ActivityInboundInterceptor):
    _last: _LastHeartbeat

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        self._last = _LastHeartbeat(outbound)
        super().init(self._last)

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        if not inspect.iscoroutinefunction(input.fn):
            input = replace(input, fn=_uninterrupted(input.fn, lambda: self._last.at))
        timeout = activity.info().heartbeat_timeout
        if not timeout:
            return await super().execute_activity(input)
        sending = asyncio.create_task(self._send_heartbeats(timeout.total_seconds() / _BEATS_IN_TIMEOUT))
        try:
            return await super().execute_activity(input)
        finally:
            sending.cancel()

    async def _send_heartbeats(self, interval: float) -> None:
        """Repeat the last report where the activity sends none, on the event loop: a thread may wait in a call."""
        while True:
            if time.monotonic() - self._last.at >= interval:
                self._last.heartbeat(*self._last.details)
            await asyncio.sleep(interval)


def _uninterrupted(function: Callable[..., Any], last_heartbeat: Callable[[], float]) -> Callable[..., Any]:
    """Return a function that runs to its end although its activity is cancelled meanwhile, and keeps its result."""

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        results: list[Any] = []
        _last_heartbeat.set(last_heartbeat)
        try:
            with activity.shield_thread_cancel_exception():
                results.append(function(*args))
        except CancelledError:  # raised behind the end of the shield
            if not results:
                raise
        return results[0]

    return run
