"""A landing zone on a real Temporal server that counts its listings, and receivers that notify it."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from runtime.arrivals.notifications.receivers import Receivers
from runtime.arrivals.notifications.timing import ReceiverTiming
from runtime.arrivals.notifications.webhook import LIMITS, WebhookLimits
from sluice.contracts.arrivals import (
    ZONE_MEMO,
    CollectArrivalsInput,
    CollectArrivalsResult,
    LandingZoneInput,
    landing_zone_id,
    memo_of,
)
from sluice.contracts.starting import PipelineText
from sluice.settings import Settings
from tests.harness.waiting import in_time, until
from workflows.arrivals.landing_zone import LandingZone
from workflows.sandbox import sandbox

_QUICK = ReceiverTiming((0.2,), zones=0.3, queue_poll=1, queue_pauses=(0.2,), folder_check=0.3, folder_pauses=(0.3,))
"""Short intervals: tests wait for many of them."""


class NotifiedZones:
    """Landing zones of an installation of their own, which list their folders by themselves once an hour."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.installation = f"i-{uuid.uuid4().hex[:8]}"
        self.listings: dict[str, int] = {}
        self.named: dict[str, list[list[str] | None]] = {}
        """The files named to each listing; None for a listing of the whole zone."""

    @activity.defn(name="collect_arrivals")
    async def collect(self, input: CollectArrivalsInput) -> CollectArrivalsResult:
        self.listings[input.pipeline.name] = self.listings.get(input.pipeline.name, 0) + 1
        self.named.setdefault(input.pipeline.name, []).append(input.files)
        return CollectArrivalsResult()

    def id(self, name: str) -> str:
        return landing_zone_id(self.installation, name)

    async def start(self, name: str, path: str | Path) -> None:
        """Start a landing zone as `deploy` does; wait for its first listing, and until the server lists it."""
        input = LandingZoneInput(
            pipeline=PipelineText(name=name, text="", folder="/"),
            name=name,
            installation=self.installation,
            look=3600,
            at_once=1,
            on_failure="continue",
            properties={"from": str(path), "paths are relative to": "/"},
        )
        await self.client.start_workflow(
            LandingZone.run,
            input,
            id=self.id(name),
            task_queue=self.installation,
            memo={ZONE_MEMO: memo_of(input)},
        )
        await self.until(name, 1)
        while not [each async for each in self.client.list_workflows(f'WorkflowId = "{self.id(name)}"')]:
            await asyncio.sleep(0.1)

    async def end(self, name: str) -> None:
        await self.client.get_workflow_handle(self.id(name)).terminate()

    async def until(self, name: str, listings: int) -> None:
        """Wait for this number of listings of a zone. By itself, it would be listed after an hour."""
        await until(
            lambda: self.listings.get(name, 0) >= listings,
            lambda: f"{name} was not listed {listings} times: {self.listings}",
        )

    @asynccontextmanager
    async def receiving(
        self, client: Client | None = None, limits: WebhookLimits = LIMITS, **settings: object
    ) -> AsyncIterator[Receivers]:
        """Run the receivers of a worker; yield them once they know the zones."""
        stated = Settings.of(sluice_installation=self.installation, **settings)
        receivers = Receivers(client or self.client, stated, limits, _QUICK)
        task = asyncio.create_task(receivers.run())
        try:
            await in_time(receivers.known.until_known())
            yield receivers
            assert not task.done(), "no trouble ends the receivers"
        finally:
            task.cancel()
            await asyncio.wait([task])


@asynccontextmanager
async def notified_zones(client: Client) -> AsyncIterator[NotifiedZones]:
    """Run landing zones; end them afterwards."""
    zones = NotifiedZones(client)
    async with Worker(
        client,
        task_queue=zones.installation,
        workflows=[LandingZone],
        workflow_runner=sandbox(),
        activities=[zones.collect],
    ):
        yield zones
        for name in zones.listings:
            try:
                await zones.end(name)
            except Exception as error:  # the test has ended this zone
                assert "completed" in str(error), error
