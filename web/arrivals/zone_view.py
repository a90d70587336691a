"""The page of a landing zone, with its files and with the batches that were kept out."""

from dataclasses import dataclass
from typing import Literal

from fastapi.responses import HTMLResponse

from runtime.arrivals.landing_zones import read_zone
from runtime.arrivals.zone_files import list_zone_files
from sluice.arrivals.limits import LEAST_TO_SPLIT
from sluice.arrivals.splitting import split_refusal
from sluice.command_line import OVER_YOUNGER
from sluice.contracts.arrivals import Batch, FileStatus, ZoneStatus
from sluice.presentation.arrivals import (
    describe_batch,
    describe_file,
    describe_listing,
    describe_no_match,
    format_arrival,
)
from web.page import Page

_MOST = 200
"""Maximum number of files on the page."""


@dataclass(frozen=True)
class BatchView:
    """A batch that was kept out, and what a person may do with it."""

    batch: Batch
    text: str
    not_split: str
    """Reason why it cannot be split; empty if it can."""

    @property
    def shown(self) -> str:
        """The state that a form was shown with: another try is another state."""
        return shown_state(self.batch)

    @property
    def may_be_older(self) -> bool:
        """True if younger rows were loaded since, so that a person has to permit that its rows replace them."""
        return bool(self.batch.overtaken_by) or OVER_YOUNGER in self.batch.reason


def shown_state(batch: Batch) -> str:
    """Return a name for the present state of a batch."""
    return f"{batch.state}, {batch.tries}, {batch.run_id}"


def view_batches(zone: ZoneStatus) -> list[BatchView]:
    """Return the batches of a zone that were kept out."""
    kept_out = [batch for batch in zone.batches if batch.state == "kept out"]
    refusal = split_refusal(zone.name, zone.pipeline) if kept_out else ""
    return [BatchView(each, describe_batch(each), refusal or _one_file(each)) for each in kept_out]


def _one_file(batch: Batch) -> str:
    return "" if batch.ref.files >= LEAST_TO_SPLIT else "It has one file."


async def show_zone(
    page: Page, name: str, file: str = "", wanted: FileStatus | Literal[""] = "", code: int = 200, notice: str = ""
) -> HTMLResponse:
    """Return the page of a landing zone, with its newest files first.

    Args:
        file: part of the paths of the shown files.
        wanted: status of the shown files; empty for any.
        code: HTTP status of the response.
        notice: message to the person, above everything else.
    """
    zone = await read_zone(page.client, page.installation, name)
    listed = await list_zone_files(page.client, page.installation, zone, file, wanted or None, _MOST)
    files = [(each, *describe_file(each, zone, listed.runs), format_arrival(each.arrived_at)) for each in listed.files]
    return page.render(
        "zone.html",
        "Arrivals",
        code,
        zone=zone,
        files=files,
        counts=describe_listing(listed, zone.batches, wanted),
        no_match=describe_no_match(file, wanted or None),
        kept_out=view_batches(zone),
        file=file,
        wanted=wanted,
        notice=notice,
    )
