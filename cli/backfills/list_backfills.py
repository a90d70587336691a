"""The output of `list --backfills`."""

import json
from typing import Any

from cli.backfills.grid import shown_state
from cli.context import CommandContext
from cli.layout import print_entries
from runtime.backfills.list_backfills import ListedBackfill, list_backfills
from runtime.installation.identity import with_known_installation
from sluice.backfills.campaign import count_states
from sluice.times import format_time


async def print_backfills(context: CommandContext, limit: int) -> int:
    """Print the latest backfill of each pipeline of this installation; return the exit code."""
    listed = await list_backfills(context.client, with_known_installation(context.settings), limit)
    if context.as_json:
        print(json.dumps({"backfills": [_fields(each) for each in listed]}))
    elif listed:
        names = ("pipeline", "state", "started", "partitions")
        print_entries(context.console, names, [_row(each) for each in listed], beside=3)
    else:
        context.console.print("There are no backfills yet: `backfill FILE --partitions …` starts one.")
    return 0


def _row(listed: ListedBackfill) -> tuple[str, ...]:
    return listed.pipeline, _state(listed), format_time(listed.started), _counts(listed)


def _state(listed: ListedBackfill) -> str:
    paused = listed.state == "running" and listed.status and listed.status.campaign.paused
    return "paused" if paused else listed.state


def _counts(listed: ListedBackfill) -> str:
    if listed.status is None:
        return "not known: no worker answers" if listed.state == "running" else "not known any more"
    status, campaign = listed.status, listed.status.campaign
    counts = ", ".join(f"{number:,} {shown_state(status, state)}" for state, number in count_states(campaign).items())
    return f"{counts}; paused {campaign.paused}" if _state(listed) == "paused" else counts


def _fields(listed: ListedBackfill) -> dict[str, Any]:
    campaign = listed.status.campaign if listed.status else None
    return {
        "pipeline": listed.pipeline,
        "state": _state(listed),
        "started": listed.started.isoformat(timespec="seconds"),
        "closed": listed.closed.isoformat(timespec="seconds") if listed.closed else None,
        "counts": dict(count_states(campaign)) if campaign else None,
        "paused": campaign.paused if campaign else None,
        "rows_added": campaign.rows_added if campaign else None,
    }
