"""The list of backfills, each with a grid of its partitions."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from runtime.backfills.list_backfills import ListedBackfill, list_backfills
from sluice.backfills.progress import partition_states
from sluice.presentation.backfills import shown_counts, shown_state
from web.page import ThePage

router = APIRouter(include_in_schema=False)
_MOST = 50
_MOST_PARTITIONS = 1000
"""Maximum number of partitions in a grid."""


@dataclass(frozen=True)
class BackfillView:
    """A backfill with its partitions."""

    listed: ListedBackfill
    state: str
    counts: Sequence[tuple[str, int]]
    partitions: Sequence[tuple[str, str, str]]
    """Name, state, and the reason if it is not on main."""
    more: int
    """Number of partitions that the grid leaves out."""


@router.get("/backfills")
async def backfills(page: ThePage) -> HTMLResponse:
    """List the latest backfill of each pipeline."""
    listed = await list_backfills(page.client, page.installation, _MOST)
    return page.render("backfills.html", "Backfills", backfills=[_view(each) for each in listed])


def _view(listed: ListedBackfill) -> BackfillView:
    status = listed.status
    if status is None:
        return BackfillView(listed, listed.label, [], [], 0)
    progress = status.progress
    states = partition_states(progress)
    partitions = [
        (name, shown_state(status, state), note.reason if (note := progress.notes.get(name)) else "")
        for name, state in states.items()
    ]
    return BackfillView(
        listed=listed,
        state=listed.label,
        counts=list(shown_counts(status).items()),
        partitions=partitions[:_MOST_PARTITIONS],
        more=max(0, len(partitions) - _MOST_PARTITIONS),
    )
