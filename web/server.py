"""Serve the page on 127.0.0.1."""

import socket

import uvicorn
from temporalio.client import Client

from sluice.errors import BadEnvironment
from sluice.settings import Settings
from web.access import Access
from web.app import make_app
from web.session import Session

_HOST = "127.0.0.1"
_LAST_ANSWERS = 1
"""Time that open connections have to end when the server stops, in seconds. Open pages connect again."""


async def serve(client: Client, settings: Settings, session: Session, proxy: Access | None = None) -> None:
    """Serve the page until the process gets a signal.

    Args:
        settings: settings with the id of the reached installation.
        proxy: the proxy that names the people; None means that the token of the session gives access.

    Raises:
        BadEnvironment: the port is in use.
    """
    listening = _listen(session.port)
    config = uvicorn.Config(
        make_app(client, settings, session, proxy),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_LAST_ANSWERS,
    )
    await uvicorn.Server(config).serve(sockets=[listening])


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((_HOST, port))
    except OSError as error:
        listening.close()
        raise BadEnvironment(f"the port {port} on {_HOST} is in use: name another one by --port") from error
    return listening
