"""The list of quarantined branches."""

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from sluice.presentation.next_steps import quarantine_commands
from web.page import ThePage

router = APIRouter(include_in_schema=False)
_EFFECTS = {
    "to repair": "Runs SQL on the branch, audits it again, and publishes it if it passes.",
    "to release": "Audits the same rows again, and publishes them if they pass. Change the checks first.",
    "to discard": "Deletes the branch.",
}
"""Effects of the commands, by purpose, in the order of the page."""


@router.get("/quarantine")
async def quarantine(page: ThePage) -> HTMLResponse:
    """List what was kept out of main, and why."""
    entries = [
        (each, _in_order(quarantine_commands(each.run_id, may_release=each.verified and not each.target)))
        for each in await page.attention.quarantines()
    ]
    return page.render("quarantine.html", "Quarantine", entries=entries, effects=_EFFECTS)


def _in_order(commands: dict[str, str]) -> dict[str, str]:
    return {purpose: commands[purpose] for purpose in _EFFECTS if purpose in commands}
