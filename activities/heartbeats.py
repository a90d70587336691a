"""Heartbeats for every activity, so that Temporal soon detects a lost worker.

For an activity that reports no progress, the worker's event loop sends the heartbeats. Heartbeats also let Temporal
deliver cancellations. A cancellation does not interrupt an activity that runs in a thread: such an activity is short,
and runs to its end.
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
"""Time of the last heartbeat of the activity in this thread."""
_BEATS_IN_TIMEOUT = 4
"""Number of heartbeats sent within one heartbeat time-out, so that some may arrive late."""


def missed_heartbeats() -> bool:
    """Return True if the last heartbeat of this activity is too old, for example after a pause of the process.

    Temporal has given up such a try.
    """
    timeout, at = activity.info().heartbeat_timeout, _last_heartbeat.get(None)
    return bool(timeout and at and time.monotonic() - at() > timeout.total_seconds())


class Heartbeats(Interceptor):
    """Interceptor that sends heartbeats for each activity with a heartbeat time-out."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Wrap the execution of an activity."""
        return _KeptAlive(next)


class _LastHeartbeat(ActivityOutboundInterceptor):
    """The last report of an activity, and its time."""

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
            input = replace(input, fn=uninterrupted(input.fn, lambda: self._last.at))
        timeout = activity.info().heartbeat_timeout
        if not timeout:
            return await super().execute_activity(input)
        sending = asyncio.create_task(self._send_heartbeats(timeout.total_seconds() / _BEATS_IN_TIMEOUT))
        try:
            return await super().execute_activity(input)
        finally:
            sending.cancel()

    async def _send_heartbeats(self, interval: float) -> None:
        """Repeat the last report while the activity sends none.

        The event loop does this, because the thread of the activity may be blocked in a call.
        """
        while True:
            if time.monotonic() - self._last.at >= interval:
                self._last.heartbeat(*self._last.details)
            await asyncio.sleep(interval)


def uninterrupted(function: Callable[..., Any], last_heartbeat: Callable[[], float]) -> Callable[..., Any]:
    """Wrap a function so that a cancellation of its activity neither interrupts it nor discards its result.

    Args:
        function: the function of an activity that runs in a thread.
        last_heartbeat: returns the time of the activity's last heartbeat, in seconds of the monotonic clock.
    """

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        results: list[Any] = []
        _last_heartbeat.set(last_heartbeat)
        try:
            with activity.shield_thread_cancel_exception():
                results.append(function(*args))
        except CancelledError:  # raised after the end of the shield
            if not results:
                raise
        return results[0]

    return run
