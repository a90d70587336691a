"""Options that several commands share."""

from typing import Annotated

import typer

from cli.context import ReportFormat
from cli.exit_codes import WRONG_USE

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output, and nothing else.")]
Report = Annotated[
    ReportFormat | None,
    typer.Option("--report", help="Print the report to standard output in this form, and nothing else: md."),
]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run as `list` shows it, or a pipeline for its latest run.")]


def show_help(context: typer.Context) -> None:
    """Show the help of a group of commands that is called without one, as wrong use."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(WRONG_USE)
