"""The output of `list --backfills`."""

import json
from typing import Any

from cli.context import CommandContext
from cli.layout import print_entries
from runtime.backfills.list_backfills import ListedBackfill, list_backfills
from runtime.installation.identity import with_known_installation
from sluice.presentation.backfills import shown_counts
from sluice.times import format_time


async def print_backfills(context: CommandContext, limit: int) -> int:
    """Print the latest backfill of each pipeline of this installation; return the exit code."""
    listed = await list_backfills(context.client, with_known_installation(context.settings).installation, limit)
    if context.as_json:
        print(json.dumps({"backfills": [_fields(each) for each in listed]}))
    elif listed:
        names = ("pipeline", "state", "started", "partitions")
        print_entries(context.console, names, [_row(each) for each in listed], in_first_line=3)
    else:
        context.console.print("There are no backfills yet: `backfill FILE --partitions …` starts one.")
    return 0


def _row(listed: ListedBackfill) -> tuple[str, ...]:
    return listed.pipeline, listed.label, format_time(listed.started), _counts(listed)


def _counts(listed: ListedBackfill) -> str:
    if listed.why:
        return f"not known: the worker cannot continue it: {listed.why}"
    if listed.status is None:
        return "not known: no worker answers" if listed.state == "running" else "not known any more"
    status, progress = listed.status, listed.status.progress
    counts = ", ".join(f"{number:,} {state}" for state, number in shown_counts(status).items())
    return f"{counts}; paused {progress.paused}" if listed.is_paused else counts


def _fields(listed: ListedBackfill) -> dict[str, Any]:
    progress = listed.status.progress if listed.status else None
    return {
        "pipeline": listed.pipeline,
        "state": "paused" if listed.is_paused else listed.state,
        "started": listed.started.isoformat(timespec="seconds"),
        "closed": listed.closed.isoformat(timespec="seconds") if listed.closed else None,
        "counts": dict(shown_counts(listed.status)) if listed.status else None,
        "paused": progress.paused if progress else None,
        "rows_added": progress.rows_added if progress else None,
        "why": listed.why,
    }
