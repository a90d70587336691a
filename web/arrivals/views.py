"""Landing zones, and the files of one zone with the reason for the state of each."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from runtime.arrivals.landing_zones import read_zone, read_zones
from runtime.arrivals.zone_files import list_zone_files
from sluice.arrivals.splitting import split_refusal
from sluice.contracts.arrivals import FileStatus
from sluice.presentation.arrivals import (
    describe_batch,
    describe_batches,
    describe_file,
    describe_files,
    describe_listing,
    describe_no_match,
    format_arrival,
)
from web.page import ThePage

router = APIRouter(include_in_schema=False)
_MOST = 200
"""Maximum number of files on the page."""


@router.get("/arrivals")
async def arrivals(page: ThePage) -> HTMLResponse:
    """List the landing zones."""
    answered, silent = await read_zones(page.client, page.installation)
    zones = [
        (
            zone,
            describe_files(zone, zone.batches),
            describe_batches(zone.batches),
            format_arrival(zone.latest_arrival),
        )
        for zone in answered
    ]
    return page.render("arrivals.html", "Arrivals", zones=zones, silent=silent)


@router.get("/arrivals/{name}")
async def zone(
    page: ThePage,
    name: str,
    file: Annotated[str, Query(max_length=1_000)] = "",
    status: FileStatus | Literal[""] = "",
) -> HTMLResponse:
    """List the files of a landing zone, newest first."""
    shown = await read_zone(page.client, page.installation, name)
    listed = await list_zone_files(page.client, page.installation, shown, file, status or None, _MOST)
    files = [(each, *describe_file(each, shown, listed.runs), format_arrival(each.arrived_at)) for each in listed.files]
    kept_out = [(batch, describe_batch(batch)) for batch in shown.batches if batch.state == "kept out"]
    return page.render(
        "zone.html",
        "Arrivals",
        zone=shown,
        files=files,
        counts=describe_listing(listed, shown.batches, status),
        no_match=describe_no_match(file, status or None),
        kept_out=kept_out,
        may_split=not (kept_out and split_refusal(shown.name, shown.pipeline)),
        file=file,
        wanted=status,
    )
