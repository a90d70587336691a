"""The command `page`: serve the page for people who own tables."""

import getpass
import sys
from typing import Annotated

import typer

from cli.context import CommandContext, run_command
from runtime.installation.identity import with_installation
from sluice.environment_files import read_environment
from sluice.settings import read_settings
from web.server import serve
from web.session import Session, read_or_make_token, token_file


def page(
    port: Annotated[int, typer.Option(help="The port on 127.0.0.1.", min=1, max=65535)] = 8240,
) -> None:
    """Serve the page on 127.0.0.1: what waits for you, what changes, what was kept out and why. Ctrl-C ends it."""

    def prepare() -> Session:
        home = read_settings(read_environment()).storage.sluice_home
        return Session(read_or_make_token(home), getpass.getuser(), port)

    async def command(context: CommandContext, session: Session) -> int:
        # A log file may have other readers, so it does not get the token.
        token = f", token in {token_file(context.settings.storage.sluice_home)}"
        address = session.address if sys.stderr.isatty() else f"{session.origin}{token}"
        print(f"Page: {address}", file=sys.stderr, flush=True)
        context.interruption.message = "The page has stopped."
        await serve(context.client, with_installation(context.settings), session)
        return 0

    run_command(command, False, prepare)
