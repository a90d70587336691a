"""The command `resume`: resume the automatic starts of a pipeline."""

from typing import Annotated

import typer

from cli.context import CommandContext, no_preparation, run_command
from cli.options import AsJson
from runtime.installation.identity import with_known_installation
from runtime.schedules.pausing import resume_pipeline


def resume_command(
    pipeline: Annotated[str, typer.Argument(metavar="PIPELINE", help="The name of a pipeline that is deployed.")],
    note: Annotated[str, typer.Option("--note", help="Why: `arrivals` and the Temporal Web UI show it.")] = "",
    as_json: AsJson = False,
) -> None:
    """Resume the schedule and the landing zone of a pipeline. Starts missed during the pause stay missed."""

    async def command(context: CommandContext, _: None) -> int:
        await resume_pipeline(context.client, with_known_installation(context.settings).installation, pipeline, note)
        context.print_result({"pipeline": pipeline, "paused": False, "note": note}, f"Resumed {pipeline}.")
        return 0

    run_command(command, as_json, no_preparation)
