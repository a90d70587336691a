"""Commands that are imported when they are used, so that a run does not wait for the imports of other commands."""

from importlib import import_module

from typer import Context
from typer.core import TyperGroup
from typer.main import get_command

LAZY_COMMANDS = {
    "arrivals": "cli.arrivals",
    "deploy": "cli.deploy",
    "pause": "cli.pause",
    "resume": "cli.resume",
    "backfill": "cli.backfill",
    "doctor": "cli.doctor",
    "list": "cli.list_runs",
    "files": "cli.files",
    "generate": "cli.generate",
    "import": "cli.import_checks",
    "query": "cli.query",
    "rehearse": "cli.rehearse",
    "requeue": "cli.requeue",
    "results": "cli.results",
    "rollback": "cli.rollback",
    "quarantine": "cli.quarantine",
    "codec-server": "cli.codec_server",
}
"""By the name of a command, the module that holds it as `app`."""


class LazyGroup(TyperGroup):
    """A group that imports some commands lazily. Source: Click's documentation, "Lazily loading subcommands"."""

    def list_commands(self, ctx: Context) -> list[str]:  # type: ignore[override]  # Typer's own context is one
        """Return the names of all commands."""
        return [*super().list_commands(ctx), *LAZY_COMMANDS]

    def get_command(self, ctx: Context, cmd_name: str):  # type: ignore[no-untyped-def, override]  # Click's, or Typer's
        """Return a command, imported if need be."""
        if cmd_name not in LAZY_COMMANDS:
            return super().get_command(ctx, cmd_name)
        command = get_command(import_module(LAZY_COMMANDS[cmd_name]).app)
        command.name = cmd_name
        return command
