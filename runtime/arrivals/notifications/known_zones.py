"""The landing zones of this installation, read from Temporal every few seconds."""

import asyncio
import logging
from pathlib import Path

from temporalio.client import Client

from lakehouse.source_files import absolute_path, is_remote, without_scheme
from runtime.arrivals.landing_zones import zone_memos
from runtime.arrivals.notifications.signal_sender import SignalSender
from runtime.arrivals.notifications.timing import TIMING, ReceiverTiming
from sluice.arrivals.notifications import StoredObject
from sluice.arrivals.notified_zones import NamedFiles, NotifiedZone, NotifiedZones
from sluice.contracts.arrivals import landing_zone_id
from sluice.errors import InvalidInput
from sluice.setting_groups import InstallationSettings

_REPORT_EVERY = 600.0
"""Interval between two log lines about notifications that concern no landing zone, in seconds."""

log = logging.getLogger("sluice.notifications")


class KnownZones:
    """The landing zones to which notifications are assigned."""

    def __init__(
        self, client: Client, settings: InstallationSettings, sender: SignalSender, timing: ReceiverTiming = TIMING
    ) -> None:
        self._client, self._settings, self._sender, self._timing = client, settings, sender, timing
        self._paths: dict[tuple[str, str], str] = {}
        self._logged: set[object] = set()
        """Zones for which a log line says that they get no notifications, or are not watched."""
        self._is_answered = asyncio.Event()
        self._reported_at: float | None = None
        self.zones = NotifiedZones()
        self.for_nobody = 0
        """Number of notifications that concerned no landing zone."""

    def concerned(self, objects: set[StoredObject]) -> NamedFiles:
        """Return the landing zones of a notification, with its files. Count the notification if there are none."""
        concerned = self.zones.of_objects(objects)
        if objects and not concerned:
            self.for_nobody += 1
            self._report()
        return concerned

    async def until_known(self) -> None:
        """Wait until Temporal has answered once: a notification before that would be dropped."""
        await self._is_answered.wait()

    async def keep(self) -> None:
        """List the zones again and again. While Temporal does not answer, the last list stays in force."""
        is_failing = False
        while True:
            try:
                await self.refresh()
                is_failing = False
            except Exception as error:
                if not is_failing:
                    log.warning("cannot list the landing zones, will try again: %s", error)
                is_failing = True
            await asyncio.sleep(self._timing.zones)

    async def refresh(self) -> None:
        """List the landing zones. Request a listing from new zones, since their earlier notifications were dropped."""
        before = self.zones
        zones = [await self._readable_zone(memo) async for memo in zone_memos(self._client, self._settings)]
        self.zones = NotifiedZones(frozenset(zone for zone in zones if zone))
        if self._is_answered.is_set():
            self._sender.request({zone.workflow_id: set() for zone in self.zones.zones - before.zones})
        self._is_answered.set()

    async def _readable_zone(self, memo: dict[str, object]) -> NotifiedZone | None:
        """Return a zone; None, and a log line for the first time, if this version cannot read its memo."""
        try:
            return await self._zone(memo)
        except Exception as error:  # written by another version, or another program
            name = str(memo.get("name", "?"))[:200]
            if name not in self._logged:
                self._logged.add(name)
                log.warning("the landing zone %r gets no notifications: %s: %s", name, type(error).__name__, error)
            return None

    async def _zone(self, memo: dict[str, object]) -> NotifiedZone | None:
        properties = memo["properties"]
        assert isinstance(properties, dict)
        stated, folder = str(properties["from"]), str(properties["paths are relative to"])
        if (stated, folder) not in self._paths:
            self._paths[stated, folder] = await asyncio.to_thread(_absolute, stated, folder)
        path = self._paths[stated, folder]
        id = landing_zone_id(self._settings.sluice_installation, str(memo["name"]))
        zone = NotifiedZone(id, path) if path else None
        if zone and zone.is_too_wide and zone not in self._logged:
            self._logged.add(zone)
            log.warning(
                "%s is not watched, only listings find files there: a watch would cover all of %s; begin the pattern "
                "with at least two folders, or name one folder",
                path,
                zone.folder,
            )
        return zone

    def _report(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._reported_at is None or now - self._reported_at > _REPORT_EVERY:
            self._reported_at = now
            log.info("%d notifications concerned no landing zone so far", self.for_nobody)


def _absolute(path: str, folder: str) -> str:
    """Return the absolute path of a landing zone, as its own listings use it; empty if it is not valid."""
    try:
        return path if is_remote(path) else str(absolute_path(without_scheme(path), Path(folder)))
    except InvalidInput:
        return ""
