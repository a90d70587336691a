"""Statuses of runs, each read from a worker again only after the history of its run has grown."""

import asyncio
import time
from dataclasses import dataclass

from runtime.run.find_run import RunLookup, query_status
from sluice.contracts.run import WAITING, RunStatus
from sluice.errors import BadEnvironment

_FRESH = 30.0
"""Age after which a status is read again in any case, in seconds, to learn that no worker answers any more."""
_MOST_KEPT = 1000
"""Maximum number of statuses that are kept in memory."""
_AT_ONCE = 8
"""Maximum number of queries to workers at the same time."""
_UNREADABLE = (asyncio.TimeoutError, BadEnvironment, ValueError)
"""Errors of a worker that does not answer in time, and of the codec without a key or with another one."""


@dataclass(frozen=True)
class _Reading:
    """A reading of a status, which is under way or has ended."""

    events: int
    """Number of events of the run's history before the reading."""
    status: "asyncio.Task[RunStatus | None]"
    began: float

    def answers(self, lookup: RunLookup, age: float) -> bool:
        """Return True if the status may be shown for a run.

        That is so if the run has not changed since. An older status, up to `age` seconds, suffices for a run that does
        not wait.
        """
        is_same, passed = self.events == lookup.description.history_length, time.monotonic() - self.began
        may_be_older = not lookup.ended and passed < age
        if not self.status.done():
            return is_same or may_be_older
        if self.status.cancelled() or self.status.exception() or (status := self.status.result()) is None:
            return False
        if is_same and self.events and (lookup.ended or passed < _FRESH):
            return True
        return may_be_older and status.stage != WAITING


class Statuses:
    """Reads statuses of runs from workers, once for all readers. Only the history of a run changes its status."""

    def __init__(self, within: float) -> None:
        """Create it without any status.

        Args:
            within: time that a worker has to answer, in seconds.
        """
        self._within = within
        self._readings: dict[str, _Reading] = {}
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def read(self, lookup: RunLookup, age: float = 0.0) -> RunStatus | None:
        """Return the status of a run; None if no worker answers. A reader that leaves cancels no reading of others.

        Args:
            age: age that the status of a run may have although its history has grown, in seconds. The status of a run
                that waited for a decision is always the present one.
        """
        run_id = lookup.description.run_id
        reading = self._readings.get(run_id)
        if reading is None or not reading.answers(lookup, age):
            reading = _Reading(
                lookup.description.history_length, asyncio.create_task(self._query(lookup)), time.monotonic()
            )
            self._readings.pop(run_id, None)  # the newest stands last
            self._readings[run_id] = reading
            if len(self._readings) > _MOST_KEPT:
                del self._readings[next(iter(self._readings))]
        return await asyncio.shield(reading.status)

    async def _query(self, lookup: RunLookup) -> RunStatus | None:
        async with self._room:
            try:
                return await asyncio.wait_for(query_status(lookup.handle), self._within)
            except _UNREADABLE:
                return None
