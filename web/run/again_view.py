"""The new start of a run that has ended, as the page of the run shows it."""

from dataclasses import dataclass

from runtime.run.listed_run import ListedRun
from sluice.contracts.run import RunResult
from sluice.publishing.start_again import may_start_again, start_again_refusal
from web.page import Page
from web.run.starting import LatestStart, latest_start


@dataclass(frozen=True)
class AgainView:
    """A new start of a run."""

    refused: str
    """Reason why the run cannot be started again; empty if it can."""
    later: LatestStart | None
    """The latest run of the same input, if it is another one."""


async def view_again(page: Page, run: ListedRun, result: RunResult) -> AgainView | None:
    """Return the new start of a run, or None if its state allows none."""
    if run.is_running or not may_start_again(result):
        return None
    refused = start_again_refusal(await page.views.request(run), result)
    latest = await latest_start(page, run.workflow_id)
    later = latest if latest and latest.run_id != run.run_id else None
    return AgainView(refused or ("It was started again already." if later else ""), later)
