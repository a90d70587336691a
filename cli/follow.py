"""Starting a run and following it, for the commands that do."""

import json
from collections.abc import Callable

from cli.context import CommandContext, enter
from cli.watch import follow
from runtime.find_run import RunLookup, find_run
from runtime.start_run import start
from sluice.contracts.run import RunInput
from sluice.pipeline.model import Pipeline


def begin(before: Callable[[], tuple[Pipeline, RunInput]], again: bool, detach: bool, as_json: bool) -> None:
    """Start what `before` finds; follow it to its end and report it, unless it is to be detached from."""

    async def act(door: CommandContext, ready: tuple[Pipeline, RunInput]) -> int:
        loaded, found = ready
        started = await start(door.client, door.settings, loaded, found, again)
        run_id = started.handle.run_id or started.handle.first_execution_run_id or ""
        door.console.print(f"{'Attached to' if started.attached else 'Started'} run [bold]{started.handle.id}[/]")
        door.console.print(f"[dim]{door.link(started.handle.id, run_id)}[/]", highlight=False, soft_wrap=True)
        if detach:
            if as_json:
                print(json.dumps({"workflow_id": started.handle.id, "run_id": run_id, "pipeline": loaded.name}))
            return 0
        return await followed(door, await find_run(door.client, started.handle.id))

    enter(act, as_json, before)


async def followed(door: CommandContext, found: RunLookup) -> int:
    """Follow a run to its end, report it, and return its exit code."""
    result = await follow(door.client, found.handle, door.console)
    return door.finish(result)
