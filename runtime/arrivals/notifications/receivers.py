"""The receivers of notifications in a worker: tasks that end with the worker, and whose failures never end it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from temporalio.client import Client

from lakehouse.source_files import is_remote, without_scheme
from runtime.arrivals.notifications.folders import watch_folders
from runtime.arrivals.notifications.known_zones import KnownZones
from runtime.arrivals.notifications.queue import receive_from_queue
from runtime.arrivals.notifications.signal_sender import SignalSender, signal_by
from runtime.arrivals.notifications.timing import TIMING, ReceiverTiming
from runtime.arrivals.notifications.webhook import LIMITS, WebhookLimits, events_address, serve_webhook
from sluice.setting_groups import StorageSettings
from sluice.settings import Settings

_PAUSE = 30.0
"""Pause before a failed receiver is started again, in seconds."""

log = logging.getLogger("sluice.notifications")


Receive = Callable[[], Awaitable[None]]


class Receivers:
    """The receivers that the settings enable.

    Raises:
        BadEnvironment: a setting is not valid.
    """

    def __init__(
        self, client: Client, settings: Settings, limits: WebhookLimits = LIMITS, timing: ReceiverTiming = TIMING
    ) -> None:
        self._sender = sender = SignalSender(signal_by(client), timing)
        self.known = known = KnownZones(client, settings.installation, sender, timing)
        own, region = _own_folders(settings.storage), settings.storage.aws_region
        self._receivers: dict[str, Receive] = {"watch of folders": lambda: watch_folders(known, sender, own, timing)}
        if address := events_address(settings.arrivals):
            self._receivers["webhook"] = lambda: serve_webhook(*address, known, sender, limits)
        if queue := settings.arrivals.sluice_events_queue:
            self._receivers["queue"] = lambda: receive_from_queue(queue, region, known, sender, timing)

    async def run(self) -> None:
        """Signal the landing zones of arriving files, until this is cancelled."""
        first: dict[str, Receive] = {"sender": self._sender.run, "list of landing zones": self.known.keep}
        tasks = [asyncio.create_task(_kept(name, work)) for name, work in first.items()]
        try:
            await self.known.until_known()
            tasks += [asyncio.create_task(_kept(name, work)) for name, work in self._receivers.items()]
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _own_folders(settings: StorageSettings) -> list[str]:
    """Return the folders that workers write to: the home, and the lake if it is local."""
    local = [settings.lake] if not is_remote(settings.lake) else []
    return [str(settings.sluice_home), *map(without_scheme, local)]


async def _kept(name: str, work: Receive) -> None:
    """Do the work, and start it again after each unexpected failure."""
    while True:
        try:
            await work()
        except Exception:
            log.exception("notifications of files: the %s failed, will restart in %g s", name, _PAUSE)
        await asyncio.sleep(_PAUSE)
