"""The command `watch`: follow a run to its end."""

from cli.context import CommandContext, no_preparation, run_command
from cli.options import AsJson, Run
from cli.run.follow import follow_and_report
from runtime.run.find_run import RunLookup, find_run
from sluice.times import format_time


def watch(run: Run, as_json: AsJson = False) -> None:
    """Follow a run to its end, and report it."""

    async def command(context: CommandContext, _: None) -> int:
        latest = await find_run(context.client, run)
        if run not in (latest.handle.id, latest.handle.run_id):
            context.console.print(describe_followed(run, latest), highlight=False, markup=False, soft_wrap=True)
        return await follow_and_report(context, latest)

    run_command(command, as_json, no_preparation, read_only=True)


def describe_followed(named: str, run: RunLookup) -> str:
    """Say which run is followed: a name of a pipeline or a landing zone means a new run after each start."""
    state = "it has ended" if run.ended else "it is under way"
    return f"The latest run of {named} is {run.handle.id}, started {format_time(run.description.start_time)}; {state}."
