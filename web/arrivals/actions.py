"""Forms that retry, split and set aside a batch that was kept out. Each names the state that it was shown with."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote

from fastapi import Depends, Form
from fastapi.responses import Response

from runtime.arrivals.landing_zones import command_batch, read_zone, split_batch
from sluice.arrivals.splitting import split_refusal
from sluice.contracts.arrivals import ZoneStatus
from sluice.contracts.zone_requests import BatchCommand, SplitBatch
from sluice.errors import InvalidPipeline
from web.arrivals.zone_view import show_zone, shown_state
from web.form import CONFLICT, answer_form, form_router
from web.page import Page, ThePage

router = form_router()


@dataclass(frozen=True)
class ShownBatch:
    """A batch, as a form was shown with it."""

    id: str
    shown: str
    """Name of the state that the person saw."""
    over_younger: bool
    """True if its rows may replace younger ones."""

    def check(self, zone: ZoneStatus) -> None:
        """Check that the batch is still in the state that the person saw.

        Raises:
            InvalidPipeline: it has another state now, or its files are on main.
        """
        batch = next((each for each in zone.batches if each.ref.id == self.id), None)
        if batch is None:
            raise InvalidPipeline(f"the landing zone of {zone.name} has no batch {self.id} any more")
        if shown_state(batch) != self.shown:
            tried = ", and its run ended again since this page was opened" if batch.state == "kept out" else ""
            raise InvalidPipeline(f"batch {self.id} is {batch.state} now{tried}")


def _shown(
    batch: Annotated[str, Form()], shown: Annotated[str, Form()] = "", over_younger: Annotated[bool, Form()] = False
) -> ShownBatch:
    return ShownBatch(batch, shown, over_younger)


Shown = Annotated[ShownBatch, Depends(_shown)]


@router.post("/arrivals/{name}/retry")
async def retry(page: ThePage, name: str, shown: Shown) -> Response:
    """Load a batch again."""
    fields = {"action": "retry", "batch": shown.id, "by": page.visitor.name, "over_younger": shown.over_younger}
    return await _answer(page, name, _command(page, name, shown, BatchCommand.model_validate(fields)))


@router.post("/arrivals/{name}/set-aside")
async def set_aside(page: ThePage, name: str, shown: Shown) -> Response:
    """Never load a batch while the zone is deployed."""
    command = BatchCommand(action="set aside", batch=shown.id, by=page.visitor.name)
    return await _answer(page, name, _command(page, name, shown, command))


@router.post("/arrivals/{name}/split")
async def split(page: ThePage, name: str, shown: Shown) -> Response:
    """Replace a batch by two halves, which are loaded separately."""
    return await _answer(page, name, _split(page, name, shown))


async def _answer(page: Page, name: str, action: Awaitable[str]) -> Response:
    return await answer_form(
        action, lambda notice: show_zone(page, name, code=CONFLICT, notice=notice), "Nothing was done"
    )


async def _command(page: Page, name: str, shown: ShownBatch, command: BatchCommand) -> str:
    """Send a command to the landing zone. Return the address of its page."""
    shown.check(await read_zone(page.client, page.installation, name))
    await command_batch(page.client, page.installation, name, command)
    return _done(page, name)


async def _split(page: Page, name: str, shown: ShownBatch) -> str:
    """Split a batch. Return the address of the page of its landing zone."""
    zone = await read_zone(page.client, page.installation, name)
    shown.check(zone)
    if refusal := split_refusal(zone.name, zone.pipeline):
        raise InvalidPipeline(refusal)
    request = SplitBatch(batch=shown.id, by=page.visitor.name, over_younger=shown.over_younger)
    await split_batch(page.client, page.installation, name, request)
    return _done(page, name)


def _done(page: Page, name: str) -> str:
    page.attention.forget()
    return f"/arrivals/{quote(name, safe='')}"
