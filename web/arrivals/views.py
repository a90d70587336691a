"""Views of landing zones: the list of all, and the page of one."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from runtime.arrivals.landing_zones import read_zones
from sluice.contracts.arrivals import FileStatus
from sluice.presentation.arrivals import describe_batches, describe_files, format_arrival
from web.arrivals.zone_view import show_zone
from web.page import ThePage

router = APIRouter(include_in_schema=False)


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
    return await show_zone(page, name, file, status)
