"""Quarantines, landing zones and schedules that need a person soon."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TypeVar

from temporalio.client import Client
from temporalio.service import RPCError

from runtime.arrivals.landing_zones import list_zones, read_zone
from runtime.schedules.list_schedules import ListedSchedule, list_schedules
from runtime.short_workflow import query_lake
from sluice.contracts.arrivals import ZoneStatus
from sluice.contracts.lake_queries import ListQuarantineInput, ListQuarantineResult, QuarantineSummary
from sluice.errors import SluiceError
from sluice.setting_groups import InstallationSettings
from sluice.times import parse_time
from web.cached import Cached

_FRESH = 20.0
"""Age after which it is read again, in seconds."""
_PATIENCE = 2.0
"""Time that a reader waits for them, in seconds. Without a worker, it takes longer to know that none answers."""
_SOON = timedelta(days=2)
_T = TypeVar("_T")


@dataclass(frozen=True)
class Attention:
    """Quarantines, landing zones and schedules, each None if it is not known, and the problems of reading them."""

    quarantines: list[QuarantineSummary] | None = None
    """Quarantined branches, newest first."""
    zones: list[ZoneStatus] | None = None
    schedules: list[ListedSchedule] | None = None
    problems: list[str] = field(default_factory=list)

    @property
    def ending(self) -> list[QuarantineSummary]:
        """Quarantines that end within two days, the earliest first."""
        latest = datetime.now(timezone.utc) + _SOON
        ending = (each for each in self.quarantines or () if _ends_before(each, latest))
        return sorted(ending, key=lambda each: each.expires)

    @property
    def troubled_zones(self) -> list[ZoneStatus]:
        """Landing zones that are paused, cannot be listed, or have kept out a batch."""
        return [each for each in self.zones or () if each.paused or each.problem or _kept_out(each)]

    @property
    def troubled_schedules(self) -> list[ListedSchedule]:
        """Schedules that are paused or missed starts."""
        return [each for each in self.schedules or () if each.paused is not None or any(vars(each.missed).values())]


class AttentionReader:
    """Reads quarantines, landing zones and schedules, once for all readers."""

    def __init__(self, client: Client, installation: InstallationSettings) -> None:
        self._client, self._installation = client, installation
        self._attention = Cached(self._read, _FRESH)

    async def read(self) -> Attention:
        """Return all three. A part that cannot be read, or not soon, becomes a problem."""
        try:
            return await asyncio.wait_for(self._attention.get(), _PATIENCE)
        except asyncio.TimeoutError:
            return Attention(
                problems=["Quarantines, landing zones and schedules are still being read: reload the page."]
            )

    async def quarantines(self) -> list[QuarantineSummary]:
        """Return the quarantined branches, newest first.

        Raises:
            SluiceError: no worker answers, or the catalog does not.
        """
        listed = await query_lake(self._client, self._installation, ListQuarantineInput(), ListQuarantineResult)
        return [each.summary for each in listed.quarantined]

    async def zones(self) -> list[ZoneStatus]:
        """Return the status of each landing zone.

        Raises:
            ServiceUnavailable: no worker answers.
        """
        names = await list_zones(self._client, self._installation)
        return list(await asyncio.gather(*(read_zone(self._client, self._installation, name) for name in names)))

    async def schedules(self) -> list[ListedSchedule]:
        """Return the schedules, sorted by pipeline."""
        return await list_schedules(self._client, self._installation)

    async def _read(self) -> Attention:
        problems: list[str] = []
        quarantines, zones, schedules = await asyncio.gather(
            _or_problem(self.quarantines, "Quarantines", problems),
            _or_problem(self.zones, "Landing zones", problems),
            _or_problem(self.schedules, "Schedules", problems),
        )
        return Attention(quarantines, zones, schedules, problems)


async def _or_problem(read: Callable[[], Awaitable[list[_T]]], what: str, problems: list[str]) -> list[_T] | None:
    try:
        return await read()
    except (SluiceError, RPCError) as error:
        problems.append(f"{what} are not known: {error}")
        return None


def _ends_before(quarantine: QuarantineSummary, latest: datetime) -> bool:
    try:
        end = parse_time(quarantine.expires)
    except ValueError:
        return False
    return (end if end.tzinfo else end.replace(tzinfo=timezone.utc)) <= latest


def _kept_out(zone: ZoneStatus) -> bool:
    return any(batch.state == "kept out" for batch in zone.batches)
