"""The list of schedules."""

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from sluice.presentation.schedules import describe_ended, describe_missed
from web.page import ThePage

router = APIRouter(include_in_schema=False)


@router.get("/schedules")
async def schedules(page: ThePage) -> HTMLResponse:
    """List schedules with their last, next and missed starts."""
    listed = [
        (each, describe_missed(each.missed), describe_ended(each.ended) if each.ended else "")
        for each in await page.attention.schedules()
    ]
    return page.render("schedules.html", "Schedules", schedules=listed)
