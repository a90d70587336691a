"""Signal landing zones to list their files soon: many notifications of a zone within a second are one signal.

At most one entry per zone waits, however many notifications arrive and however long Temporal is unavailable.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from runtime.arrivals.notifications.timing import TIMING, ReceiverTiming, pause_after
from sluice.arrivals.notified_zones import NamedFiles
from workflows.arrivals.landing_zone import LandingZone

_COLLECT = 0.2
"""Time after a notification in which others of the same zone join it, in seconds."""
_EVERY = 1.0
"""Minimum interval between two signals of a zone, in seconds."""
_REMEMBERED = 60.0
"""Time for which the last signal of a zone is remembered, in seconds."""
_MOST_FILES, _MOST_BYTES = 200, 64 * 1024
"""Maximum number of files, and of bytes of paths, in one signal. A zone with more lists its whole folder."""
_AT_ONCE = 20
_TIMEOUT = timedelta(seconds=10)

log = logging.getLogger("sluice.notifications")


@dataclass
class _Waiting:
    """A zone that waits for its signal."""

    at: float
    files: set[str] | None = field(default_factory=set)
    """Files that notifications named; None to list the whole zone."""
    waiters: list[asyncio.Future[None]] = field(default_factory=list)

    def add(self, files: set[str] | None) -> None:
        """Add files. Too many files, or names that no message can contain, make the zone list its whole folder."""
        both = self.files | files if self.files is not None and files else set()
        try:
            size = sum(len(path.encode()) for path in both)
        except UnicodeEncodeError:  # JSON may contain lone surrogates
            size = _MOST_BYTES + 1
        self.files = both if both and len(both) <= _MOST_FILES and size <= _MOST_BYTES else None


class _Failing(NamedTuple):
    """A zone whose last signal failed."""

    until: float
    """Time of the next try, on the clock of the event loop."""
    tries: int
    error: str


class SignalSender:
    """Sends the signals. `send` signals one zone, naming files or none; it returns False if the zone has ended."""

    def __init__(self, send: Callable[[str, list[str]], Awaitable[bool]], timing: ReceiverTiming = TIMING) -> None:
        self._send, self._timing = send, timing
        self._waiting: dict[str, _Waiting] = {}
        self._sent_at: dict[str, float] = {}
        self._failing: dict[str, _Failing] = {}
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()

    def request(self, zones: NamedFiles, every: float = _EVERY) -> None:
        """Request signals to zones, and return at once.

        Args:
            every: minimum time since the last signal of each zone, in seconds.
        """
        now = asyncio.get_running_loop().time()
        for zone, files in zones.items():
            at = max(now + _COLLECT, self._sent_at.get(zone, 0.0) + every)
            if failing := self._failing.get(zone):
                at = max(at, failing.until)
            waiting = self._waiting.setdefault(zone, _Waiting(at))
            waiting.at = min(waiting.at, at)
            waiting.add(files)
        self._changed.set()

    async def tell(self, zones: NamedFiles) -> None:
        """Signal zones, and wait until Temporal has accepted the signals. An ended zone counts as signalled."""
        self.request(zones)
        waiters = []
        for zone in zones:
            waiters.append(asyncio.get_running_loop().create_future())
            self._waiting[zone].waiters.append(waiters[-1])
        await asyncio.gather(*waiters)

    async def run(self) -> None:
        """Send the requested signals, forever."""
        try:
            while True:
                self._changed.clear()
                now = asyncio.get_running_loop().time()
                idle = {zone: waiting.at for zone, waiting in self._waiting.items() if zone not in self._sending}
                free = _AT_ONCE - len(self._sending)
                for zone in [zone for zone, at in idle.items() if at <= now][:free]:
                    self._sending[zone] = asyncio.create_task(self._send_one(zone))
                later = [at for zone, at in idle.items() if zone not in self._sending]
                is_full = len(self._sending) >= _AT_ONCE
                await self._until(None if is_full or not later else min(later) - now)
        finally:
            for task in self._sending.values():
                task.cancel()
            await asyncio.gather(*self._sending.values(), return_exceptions=True)
            self._sending.clear()

    async def _until(self, seconds: float | None) -> None:
        """Wait for a time, or until there is another request or a signal was sent."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), None if seconds is None else max(0.0, seconds))

    async def _send_one(self, zone: str) -> None:
        """Signal one zone. After an error it stays requested, and delays no other zone."""
        waiting = self._waiting.pop(zone)  # before the signal: files that arrive meanwhile need another signal
        try:
            is_there = await self._send(zone, sorted(waiting.files or ()))
        except Exception as error:
            later = self._waiting.setdefault(zone, waiting)
            if later is not waiting:
                later.waiters += waiting.waiters
                later.add(waiting.files)
            later.at = self._pause_after(zone, str(error))
            return
        finally:
            self._sending.pop(zone, None)
            self._changed.set()
        self._failing.pop(zone, None)
        if is_there:
            now = asyncio.get_running_loop().time()
            self._sent_at = {each: at for each, at in self._sent_at.items() if at > now - _REMEMBERED} | {zone: now}
        else:
            log.info("%s has ended, and gets no notifications", zone)
        for waiter in waiting.waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _pause_after(self, zone: str, error: str) -> float:
        """Return the time of the next try for a zone. Log the error unless another zone failed with the same."""
        if all(failing.error != error for failing in self._failing.values()):
            log.warning("cannot notify %s, will try again: %s", zone, error)
        before = self._failing.get(zone)
        tries = before.tries + 1 if before else 1
        until = asyncio.get_running_loop().time() + pause_after(self._timing.signal_pauses, tries)
        self._failing[zone] = _Failing(until, tries, error)
        return until


def signal_by(client: Client) -> Callable[[str, list[str]], Awaitable[bool]]:
    """Return a function that signals a landing zone, by its workflow id, to list its files soon."""

    async def send(zone: str, files: list[str]) -> bool:
        try:
            await client.get_workflow_handle(zone).signal(LandingZone.look, files, rpc_timeout=_TIMEOUT)
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise
            return False
        return True

    return send
