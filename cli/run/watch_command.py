"""The command `watch`: follow a run to its end."""

from cli.context import CommandContext, no_preparation, run_command
from cli.options import AsJson, Run
from cli.run.follow import follow_and_report
from runtime.run.find_run import find_run


def watch(run: Run, as_json: AsJson = False) -> None:
    """Follow a run to its end, and report it."""

    async def command(context: CommandContext, _: None) -> int:
        return await follow_and_report(context, await find_run(context.client, run))

    run_command(command, as_json, no_preparation)
