"""The command `page`: serve the page for people who own tables."""

import getpass
import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.context import CommandContext, run_command
from runtime.installation.identity import with_installation
from sluice.environment_files import read_environment
from sluice.settings import read_settings
from web.proxy import ProxyAccess, read_proxy
from web.server import serve
from web.session import Session, read_or_make_token, token_file


def page(
    port: Annotated[int, typer.Option(help="The port on 127.0.0.1.", min=1, max=65535)] = 8240,
) -> None:
    """Serve the page on 127.0.0.1: what waits for you, what changes, what was kept out and why. Ctrl-C ends it."""

    def prepare() -> tuple[Session, ProxyAccess | None]:
        settings = read_settings(read_environment())
        session = Session(read_or_make_token(settings.storage.sluice_home), getpass.getuser(), port)
        return session, read_proxy(settings.page, settings.installation, settings.approval, port)

    async def command(context: CommandContext, prepared: tuple[Session, ProxyAccess | None]) -> int:
        session, proxy = prepared
        print(f"Page: {_address(context.settings.storage.sluice_home, session, proxy)}", file=sys.stderr, flush=True)
        context.interruption.message = "The page has stopped."
        await serve(context.client, with_installation(context.settings), session, proxy)
        return 0

    run_command(command, False, prepare)


def _address(home: Path, session: Session, proxy: ProxyAccess | None) -> str:
    """Return the address of the page for the person who starts it."""
    if proxy:
        return f"{proxy.address}, by its proxy, which reaches it at {session.origin}"
    # A log file may have other readers, so it does not get the token.
    token = f", token in {token_file(home)}"
    return session.address if sys.stderr.isatty() else f"{session.origin}{token}"
