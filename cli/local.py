"""Run a command that needs no server, with one message and exit code for each expected error."""

from collections.abc import Callable

import typer

from cli.exit_codes import UNREACHABLE, WRONG_USE, print_error
from sluice.errors import ServiceUnavailable, SluiceError


def check_locally(check: Callable[[], int | None], as_json: bool) -> None:
    """Run a command that needs no server, and exit with its exit code. An expected error becomes one message."""
    try:
        code = check()
    except SluiceError as error:
        raise typer.Exit(
            print_error(error, as_json, UNREACHABLE if isinstance(error, ServiceUnavailable) else WRONG_USE)
        ) from None
    raise typer.Exit(code or 0)
