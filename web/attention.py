"""Quarantines, landing zones, schedules and late tables that need a person soon."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TypeVar

from temporalio.client import Client
from temporalio.service import RPCError

from runtime.arrivals.landing_zones import read_zones
from runtime.run.listed_run import ListedRun
from runtime.schedules.list_schedules import ListedSchedule, list_schedules
from runtime.short_workflow import query_lake
from sluice.contracts.arrivals import ZoneStatus
from sluice.contracts.quarantine_queries import ListQuarantineInput, ListQuarantineResult, QuarantineSummary
from sluice.durations import format_duration
from sluice.errors import SluiceError
from sluice.publishing.freshness import Freshness
from sluice.setting_groups import InstallationSettings
from sluice.times import parse_time
from web.cached import Cached
from web.lake.freshness import MOST_RUNS, table_freshness
from web.run.ended_runs import EndedRuns
from web.templates import elapsed
from web.timing import TIMING, PageTiming

_FRESH = 20.0
"""Age after which it is read again, in seconds."""
_SOON = timedelta(days=2)
_T = TypeVar("_T")


@dataclass(frozen=True)
class Attention:
    """Lists of what needs a person, each None if it is not known, and the problems of reading them."""

    quarantines: list[QuarantineSummary] | None = None
    """Quarantined branches, newest first."""
    zones: list[ZoneStatus] | None = None
    schedules: list[ListedSchedule] | None = None
    problems: list[str] = field(default_factory=list)
    published: list[ListedRun] | None = None
    """Latest published runs, newest first."""

    def freshness(self, now: datetime, more: Sequence[ListedRun] = ()) -> dict[str, Freshness] | None:
        """Return the freshness of each table that a pipeline writes; None if a part of it is not known.

        Args:
            more: further published runs.
        """
        if self.published is None or self.schedules is None or self.zones is None:
            return None
        return table_freshness([*self.published, *more], self.schedules, self.zones, now)

    @property
    def late_tables(self) -> list[tuple[str, Freshness]] | None:
        """Late tables, the one that was published least recently first; None if they are not known."""
        known = self.freshness(datetime.now(timezone.utc))
        if known is None:
            return None
        return sorted(
            ((name, each) for name, each in known.items() if each.is_late), key=lambda each: each[1].published
        )

    @property
    def ending(self) -> list[QuarantineSummary]:
        """Quarantines that end within two days, the earliest first."""
        latest = datetime.now(timezone.utc) + _SOON
        ending = (each for each in self.quarantines or () if _ends_before(each, latest))
        return sorted(ending, key=lambda each: each.expires)

    @property
    def troubled_zones(self) -> list[tuple[str, str]]:
        """Names of the landing zones that need a person, each with the reason."""
        now = datetime.now(timezone.utc)
        return [(each.name, why) for each in self.zones or () if (why := _zone_trouble(each, now))]

    @property
    def troubled_schedules(self) -> list[ListedSchedule]:
        """Schedules that are paused or missed starts."""
        return [each for each in self.schedules or () if each.paused is not None or any(vars(each.missed).values())]


class AttentionReader:
    """Reads quarantines, landing zones, schedules and published runs, once for all readers."""

    def __init__(self, client: Client, installation: InstallationSettings, timing: PageTiming = TIMING) -> None:
        self._client, self._installation, self._timing = client, installation, timing
        self._published = EndedRuns(client, MOST_RUNS, state="published")
        self._attention = Cached(self._read, _FRESH)

    async def read(self) -> Attention:
        """Return everything that was read. A part that cannot be read, or not soon, becomes a problem."""
        try:
            return await asyncio.wait_for(self._attention.get(), self._timing.patience)
        except asyncio.TimeoutError:
            return Attention(
                problems=["Quarantines, landing zones, schedules and tables are still being read: reload the page."]
            )

    def forget(self) -> None:
        """Read everything again for the next reader, because a person changed a part of it."""
        self._attention.forget()

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
            ServiceUnavailable: no worker answers for one of them, or the worker cannot continue one.
        """
        zones, silent = await read_zones(self._client, self._installation)
        for error in silent.values():
            raise error
        return zones

    async def schedules(self) -> list[ListedSchedule]:
        """Return the schedules, sorted by pipeline."""
        return await list_schedules(self._client, self._installation)

    async def published(self) -> list[ListedRun]:
        """Return the latest published runs, newest first."""
        return await self._published.read()

    async def _read(self) -> Attention:
        problems: list[str] = []
        quarantines, zones, schedules, published = await asyncio.gather(
            _or_problem(self.quarantines, "Quarantines", problems),
            _or_problem(self.zones, "Landing zones", problems),
            _or_problem(self.schedules, "Schedules", problems),
            _or_problem(self.published, "Published runs", problems),
        )
        return Attention(quarantines, zones, schedules, problems, published)


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


def _zone_trouble(zone: ZoneStatus, now: datetime) -> str:
    """Return the reason why a landing zone needs a person; empty if it needs none."""
    if zone.problem or zone.paused:
        return zone.problem or f"paused: {zone.paused}"
    if any(batch.state == "kept out" for batch in zone.batches):
        return "a batch was kept out"
    latest = zone.latest_arrival or zone.since
    if zone.expect is None or latest is None or (silence := now.timestamp() - latest) < zone.expect:
        return ""
    return f"nothing to load arrived for {elapsed(silence)}; `expect` allows {format_duration(zone.expect)}"
