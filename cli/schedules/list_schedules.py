"""The output of `list --schedules`."""

import json
from typing import Any

from cli.context import CommandContext
from cli.layout import print_entries
from runtime.installation.identity import with_known_installation
from runtime.schedules.list_schedules import ListedSchedule, list_schedules
from sluice.presentation.schedules import describe_missed, describe_pause
from sluice.times import format_time


async def print_schedules(context: CommandContext) -> int:
    """Print the schedules of this installation; return the exit code."""
    listed = await list_schedules(context.client, with_known_installation(context.settings).installation)
    if context.as_json:
        print(json.dumps({"schedules": [_fields(each) for each in listed]}))
    elif listed:
        names = ("pipeline", "last start", "how it ended", "next start", "missed starts", "schedule")
        print_entries(context.console, names, [_row(each) for each in listed], in_first_line=4)
    else:
        context.console.print("No schedules are deployed: `deploy DIR` applies those of pipeline files.")
    return 0


def _row(listed: ListedSchedule) -> tuple[str, ...]:
    upcoming = format_time(listed.next) if listed.next else "none"
    if listed.paused is not None:
        upcoming = f"paused: {describe_pause(listed.paused)}"
    properties = listed.given.properties
    return (
        listed.given.name,
        format_time(listed.last) if listed.last else "never",
        listed.state,
        upcoming,
        describe_missed(listed.missed) or "none",
        f"{properties.get('cron', '')} in {listed.given.zone}",
    )


def _fields(listed: ListedSchedule) -> dict[str, Any]:
    return {
        "pipeline": listed.given.name,
        "set": listed.given.set_name,
        "properties": listed.given.properties,
        "last": listed.last.isoformat(timespec="seconds") if listed.last else None,
        "state": listed.state,
        "ended": listed.ended.model_dump(mode="json") if listed.ended else None,
        "next": listed.next.isoformat(timespec="seconds") if listed.next else None,
        "missed": listed.missed.model_dump(),
        "paused": listed.paused,
    }
