"""Commands that are imported when they are used: a run does not wait for what only others need."""

from importlib import import_module

from typer import Context
from typer.core import TyperGroup
from typer.main import get_command

ELSEWHERE = {
    "requeue": "cli.requeue",
    "results": "cli.results",
    "rollback": "cli.rollback",
    "quarantine": "cli.quarantine",
    "codec-server": "cli.codec_server",
}
"""By the name of a command, the module whose `app` it is."""


class LazyGroup(TyperGroup):
    """A group of commands, some of which are elsewhere. Source: Click's documentation, "Lazily loading subcommands"."""

    def list_commands(self, ctx: Context) -> list[str]:  # type: ignore[override]  # Typer's own context is one
        """Return the names of all commands."""
        return [*super().list_commands(ctx), *ELSEWHERE]

    def get_command(self, ctx: Context, cmd_name: str):  # type: ignore[no-untyped-def, override]  # Click's, or Typer's
        """Return a command, imported if need be."""
        if cmd_name not in ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        found = get_command(import_module(ELSEWHERE[cmd_name]).app)
        found.name = cmd_name
        return found
