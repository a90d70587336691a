"""The list of quarantined branches, each with the forms that release, repair, keep and discard it."""

from collections.abc import Mapping

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from web.page import Page, ThePage
from web.quarantine.quarantine_view import view_quarantines

router = APIRouter(include_in_schema=False)
NOTHING: Mapping[str, str] = {}
"""No SQL was refused."""


@router.get("/quarantine")
async def quarantine(page: ThePage) -> HTMLResponse:
    """List what was kept out of main, and why."""
    return await show_quarantines(page)


async def show_quarantines(
    page: Page, status: int = 200, notice: str = "", typed: Mapping[str, str] = NOTHING
) -> HTMLResponse:
    """Return the page of quarantines.

    Args:
        status: HTTP status of the response.
        notice: message to the person, above everything else.
        typed: SQL that was refused, by branch. The form shows it again.
    """
    views = await view_quarantines(page, await page.attention.quarantines(), typed)
    return page.render("quarantine.html", "Quarantine", status, entries=views, notice=notice)
