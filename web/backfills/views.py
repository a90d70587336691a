"""The list of backfills, each with a grid of its partitions."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from runtime.backfills.list_backfills import ListedBackfill, list_backfills
from sluice.backfills.progress import count_states, partition_states
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
    progress = listed.status.progress if listed.status else None
    if progress is None:
        return BackfillView(listed, listed.state, [], [], 0)
    states = partition_states(progress)
    partitions = [
        (name, state, note.reason if (note := progress.notes.get(name)) else "") for name, state in states.items()
    ]
    return BackfillView(
        listed=listed,
        state="paused" if listed.state == "running" and progress.paused else listed.state,
        counts=list(count_states(progress).items()),
        partitions=partitions[:_MOST_PARTITIONS],
        more=max(0, len(partitions) - _MOST_PARTITIONS),
    )
