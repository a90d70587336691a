"""Commands that are imported on use, so that a run does not wait for the imports of other commands."""

from importlib import import_module

from typer import Context
from typer.core import TyperGroup
from typer.main import get_command

LAZY_COMMANDS = {
    "arrivals": "cli.arrivals.commands",
    "deploy": "cli.schedules.deploy",
    "pause": "cli.schedules.pause",
    "resume": "cli.schedules.resume",
    "backfill": "cli.backfills.commands",
    "doctor": "cli.installation.doctor",
    "list": "cli.run.list_runs",
    "files": "cli.lake.files",
    "generate": "cli.pipeline.generate",
    "import": "cli.pipeline.import_checks",
    "query": "cli.lake.query",
    "rehearse": "cli.pipeline.rehearse",
    "requeue": "cli.quarantine.requeue",
    "results": "cli.lake.results",
    "rollback": "cli.publishing.rollback",
    "quarantine": "cli.quarantine.commands",
    "codec-server": "cli.installation.codec_server",
}
"""Modules of the commands, by command name; each has the command as `app`."""


class LazyGroup(TyperGroup):
    """A group that imports some commands lazily. Source: Click's documentation, "Lazily loading subcommands"."""

    def list_commands(self, ctx: Context) -> list[str]:  # type: ignore[override]  # Typer's own context is one
        """Return the names of all commands."""
        return [*super().list_commands(ctx), *LAZY_COMMANDS]

    def get_command(self, ctx: Context, cmd_name: str):  # type: ignore[no-untyped-def, override]  # Click's, or Typer's
        """Return a command, importing it if necessary."""
        if cmd_name not in LAZY_COMMANDS:
            return super().get_command(ctx, cmd_name)
        command = get_command(import_module(LAZY_COMMANDS[cmd_name]).app)
        command.name = cmd_name
        return command
