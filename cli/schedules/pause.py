"""The command `pause`: pause the automatic starts of a pipeline."""

from typing import Annotated

import typer

from cli.context import CommandContext, no_preparation, run_command
from cli.options import AsJson
from runtime.installation.identity import with_known_installation
from runtime.schedules.pausing import pause_pipeline


def pause_command(
    pipeline: Annotated[str, typer.Argument(metavar="PIPELINE", help="The name of a pipeline that is deployed.")],
    note: Annotated[str, typer.Option("--note", help="Why: `list --schedules` and `arrivals` show it.")],
    as_json: AsJson = False,
) -> None:
    """Pause the schedule and the landing zone of a pipeline. `deploy` does not resume them."""

    async def command(context: CommandContext, _: None) -> int:
        installation = with_known_installation(context.settings).installation
        noted = await pause_pipeline(context.client, installation, pipeline, note)
        context.print_result({"pipeline": pipeline, "paused": True, "note": noted}, f"Paused {pipeline}: {noted}")
        return 0

    run_command(command, as_json, no_preparation)
