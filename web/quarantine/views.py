"""The list of quarantined branches."""

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from sluice.presentation.next_steps import quarantine_commands
from web.page import ThePage

router = APIRouter(include_in_schema=False)


@router.get("/quarantine")
async def quarantine(page: ThePage) -> HTMLResponse:
    """List what was kept out of main, and why."""
    entries = [
        (each, quarantine_commands(each.run_id, may_release=each.verified and not each.target))
        for each in await page.attention.quarantines()
    ]
    return page.render("quarantine.html", "Quarantine", entries=entries)
