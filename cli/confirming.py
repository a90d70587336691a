"""Ask before a command deletes or publishes: the command shows its effect, and a person or `--yes` agrees."""

import sys
from typing import Annotated

import typer

from cli.context import CommandContext
from sluice.errors import InvalidPipeline

Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking; scripts need this.")]


def confirm(context: CommandContext, question: str, *, yes: bool, refused: str = "nothing was changed") -> None:
    """Ask a person to confirm what was shown.

    Args:
        refused: the message if the person does not confirm.

    Raises:
        InvalidPipeline: the answer is no, or there is nobody to ask: no terminal, or --json.
    """
    if yes:
        return
    if context.as_json or not sys.stdin.isatty():
        raise InvalidPipeline(
            f"{refused}: without a terminal, or with --json, the command cannot ask. Add --yes to do what is shown "
            "above"
        )
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort:
        agreed = False
    if not agreed:
        raise InvalidPipeline(refused)
