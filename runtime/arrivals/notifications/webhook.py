"""An HTTP server that receives notifications of object stores: from versitygw, SNS, or a program."""

import asyncio
import hmac
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from runtime.arrivals.notifications.connections import ConnectionLimits
from runtime.arrivals.notifications.known_zones import KnownZones
from runtime.arrivals.notifications.signal_sender import SignalSender
from sluice.arrivals.notifications import MAX_BYTES, StoredObject, UnreadableNotification, read_notification
from sluice.errors import BadEnvironment
from sluice.secrets import read_secret
from sluice.setting_groups import ArrivalSettings

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_MIN_TOKEN = 16
_MAX_PORT = 65535
_LOG_EVERY = 600.0
"""Interval between two log lines about requests that are refused for the same kind of reason, in seconds."""
_BEARER = "Bearer "

log = logging.getLogger("sluice.notifications")


@dataclass(frozen=True)
class WebhookLimits:
    """Limits of the server. Times are in seconds."""

    body: float = 5.0
    """Time limit for the body of a request."""
    connection: float = 10.0
    """Time limit of a connection, for headers, body and answer together."""
    connections: int = 100
    """Maximum number of connections at the same time."""
    retry: float = 5.0
    """Pause between tries to listen while another program, such as another worker, has the port."""


LIMITS = WebhookLimits()


def events_address(settings: ArrivalSettings) -> tuple[str, int, str] | None:
    """Return the host, port and token of the server; None if the settings name no address.

    Raises:
        BadEnvironment: the port or the token is not valid, or there is no token and other machines could send.
    """
    if not settings.sluice_events_address:
        return None
    host, _, port = settings.sluice_events_address.rpartition(":")
    host = host.strip("[]")
    if not 0 < int(port) <= _MAX_PORT:
        raise BadEnvironment(
            f"SLUICE_EVENTS_ADDRESS={settings.sluice_events_address}: a port is a number from 1 to {_MAX_PORT}"
        )
    token = read_secret(settings.sluice_events_token_file, "SLUICE_EVENTS_TOKEN_FILE")
    if token and (len(token) < _MIN_TOKEN or not token.replace("-", "").replace("_", "").replace(".", "").isalnum()):
        raise BadEnvironment(
            f"SLUICE_EVENTS_TOKEN_FILE={settings.sluice_events_token_file}: a token has at least {_MIN_TOKEN} letters, "
            "digits, '-', '_' and '.': `openssl rand -hex 24` makes one"
        )
    if host not in _LOOPBACK and not token:
        raise BadEnvironment(
            f"SLUICE_EVENTS_ADDRESS={settings.sluice_events_address}: other machines can reach it: set "
            "SLUICE_EVENTS_TOKEN_FILE, too"
        )
    return host, int(port), token


async def serve_webhook(
    host: str, port: int, token: str, known: KnownZones, sender: SignalSender, limits: WebhookLimits = LIMITS
) -> None:
    """Receive notifications until this is cancelled. While another program has the port, wait for it."""
    app = webhook_app(token, lambda objects: sender.request(known.concerned(objects)), limits)
    runner = web.AppRunner(app, access_log=None, keepalive_timeout=limits.body, lingering_time=1.0)
    await runner.setup()
    assert runner.server
    connections = ConnectionLimits(runner.server, limits.connection, limits.connections)
    server: asyncio.Server | None = None
    is_taken = False
    try:
        while True:
            try:
                server = await asyncio.get_running_loop().create_server(connections, host, port)
                log.info("receives notifications at http://%s:%d", host, port)
                await asyncio.Event().wait()
            except OSError as error:
                if not is_taken:
                    log.warning("cannot receive notifications at %s:%d, will try again: %s", host, port, error.strerror)
                is_taken = True
                await asyncio.sleep(limits.retry)
    finally:
        if server:
            server.close()
        await runner.cleanup()


def webhook_app(
    token: str,
    take: Callable[[set[StoredObject]], None],
    limits: WebhookLimits = LIMITS,
    clock: Callable[[], float] = time.monotonic,
) -> web.Application:
    """Return the server: a notification is the body of a POST at any path, with the token if there is one.

    Each answer closes its connection: versitygw opens one for each event, and closes none.
    """

    logged: dict[object, float] = {}

    def refused(status: int, why: str, kind: object = None) -> web.Response:
        """Answer with a reason. Log the first such refusal, then at most one every ten minutes."""
        now = clock()
        if now - logged.get(kind or status, -_LOG_EVERY) >= _LOG_EVERY:
            logged[kind or status] = now
            log.warning("refused a notification by HTTP (%d): %s", status, why)
        return web.json_response({"message": why}, status=status)

    async def answer(request: web.Request) -> web.Response:
        response = await decide(request)
        response.force_close()
        return response

    async def decide(request: web.Request) -> web.Response:
        if token and not _has_token(request, token):
            return refused(401, "this receiver requires the token of SLUICE_EVENTS_TOKEN_FILE")
        try:
            body = await asyncio.wait_for(request.read(), limits.body)
            take(read_notification(body))
        except web.HTTPRequestEntityTooLarge:
            return refused(413, f"a notification has at most {MAX_BYTES:,} bytes")
        except asyncio.TimeoutError:
            return refused(408, f"the body did not arrive within {limits.body:g} s")
        except UnreadableNotification as error:
            return refused(400, f"this is not a notification: {error}", type(error))
        return web.Response(status=204)

    app = web.Application(client_max_size=MAX_BYTES)
    app.router.add_post("/{path:.*}", answer)
    return app


def _has_token(request: web.Request, token: str) -> bool:
    """Return True if a request has the token, in a header or as the first part of its path."""
    header = request.headers.get("Authorization", "")
    given = (header.removeprefix(_BEARER), request.match_info["path"].split("/")[0])
    return any(hmac.compare_digest(each.encode("utf-8", "surrogateescape"), token.encode()) for each in given)
