"""The list of pipelines: what starts each, which tables it writes, and how its last runs ended."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from runtime.run.listed_run import ListedRun
from runtime.schedules.list_schedules import ListedSchedule
from sluice.contracts.arrivals import ZoneStatus
from web.page import ThePage
from web.run.board import MOST_LATEST

router = APIRouter(include_in_schema=False)
_SHOWN = 10
"""Maximum number of runs of a pipeline that are shown."""


@dataclass(frozen=True)
class PipelineView:
    """A pipeline that is deployed, or that has a run."""

    name: str
    tables: list[str]
    """Tables that its newest run writes."""
    latest: list[ListedRun]
    """Its newest runs, the oldest of them first."""
    schedule: ListedSchedule | None
    zone: ZoneStatus | None


@router.get("/pipelines")
async def pipelines(page: ThePage) -> HTMLResponse:
    """List the pipelines."""
    runs, attention = await asyncio.gather(page.board.latest(), page.attention.read())
    known = attention.schedules is not None and attention.zones is not None
    return page.render(
        "pipelines.html",
        "Pipelines",
        pipelines=list_pipelines(runs, attention.schedules or [], attention.zones or []),
        problems=[] if known else attention.problems,
        latest=MOST_LATEST if len(runs) >= MOST_LATEST else None,
    )


def list_pipelines(
    runs: Sequence[ListedRun], schedules: Sequence[ListedSchedule], zones: Sequence[ZoneStatus]
) -> list[PipelineView]:
    """Return the pipelines that are deployed or have a run, sorted by name.

    Args:
        runs: runs, newest first.
    """
    by_pipeline: dict[str, list[ListedRun]] = {}
    for run in runs:
        by_pipeline.setdefault(run.pipeline, []).append(run)
    schedule_of = {each.given.name: each for each in schedules}
    zone_of = {each.name: each for each in zones}
    return [
        PipelineView(
            name=name,
            tables=of_pipeline[0].tables if (of_pipeline := by_pipeline.get(name, [])) else [],
            latest=of_pipeline[:_SHOWN][::-1],
            schedule=schedule_of.get(name),
            zone=zone_of.get(name),
        )
        for name in sorted({*by_pipeline, *schedule_of, *zone_of})
    ]
