"""The command `codec-server`: decrypt for the Temporal Web UI and for Temporal's command line."""

import hmac
import secrets
from typing import Annotated

import typer
from aiohttp import web
from google.protobuf import json_format
from temporalio.api.common.v1 import Payloads

from cli.installation.keys import refuse
from runtime.codec import AesCodec, read_codec
from sluice.environment_files import read_environment
from sluice.errors import BadEnvironment
from sluice.secrets import read_secret
from sluice.settings import read_settings

_HOST = "127.0.0.1"
_MIN_TOKEN = 16
_BEARER = "Bearer "


def codec_server(
    port: Annotated[int, typer.Option(help="The port on 127.0.0.1.", min=1, max=65535)] = 8234,
) -> None:
    """Decrypt payloads for the Temporal Web UI. Enter the printed address there as the remote codec endpoint."""
    try:
        settings = read_settings(read_environment())
        codec = read_codec(settings.encryption.sluice_codec_key_file)
        token = read_secret(
            settings.encryption.sluice_codec_token_file, "SLUICE_CODEC_TOKEN_FILE"
        ) or secrets.token_urlsafe(24)
    except BadEnvironment as error:
        refuse(str(error))
    if codec is None:
        refuse("SLUICE_CODEC_KEY_FILE is not set: there is no key to decrypt with")
    if len(token) < _MIN_TOKEN or not token.replace("-", "").replace("_", "").replace(".", "").isalnum():
        refuse(
            f"SLUICE_CODEC_TOKEN_FILE={settings.encryption.sluice_codec_token_file}: a token has at least "
            f"{_MIN_TOKEN} letters, digits, '-', '_' and '.': `openssl rand -hex 24` makes one"
        )
    print(f"Codec endpoint: http://{_HOST}:{port}/{token}", flush=True)
    print(f"Or http://{_HOST}:{port} with the header Authorization: Bearer {token}", flush=True)
    web.run_app(
        codec_app(codec, settings.installation.temporal_ui, token), host=_HOST, port=port, print=None, access_log=None
    )


def codec_app(codec: AesCodec, ui: str, token: str) -> web.Application:
    """Return the server of /encode and /decode, for requests with the token and for pages of the Web UI only.

    The token is a bearer token, as `temporal --codec-auth` and a Web UI with sign-in send it. A Web UI without sign-in
    has it as the first part of the path.
    Source: Temporal's documentation of remote codec servers.
    """
    allowed = {
        "Access-Control-Allow-Origin": ui,
        "Access-Control-Allow-Methods": "POST",
        "Access-Control-Allow-Headers": "authorization,content-type,x-namespace",
        "Vary": "Origin",
        "Cache-Control": "no-store",
    }

    def refused(status: int, why: str) -> web.Response:
        return web.json_response({"message": why}, status=status, headers=allowed)

    async def answer(request: web.Request) -> web.Response:
        if why := _origin_error(request, ui):
            return refused(403, why)
        if not _has_token(request, token):
            return refused(401, "this codec server requires the token that it printed at its start")
        convert = codec.encode if request.path.endswith("/encode") else codec.decode
        try:
            payloads = json_format.Parse(await request.read(), Payloads())
            converted = Payloads(payloads=await convert(payloads.payloads))
        except (json_format.ParseError, ValueError) as error:
            return refused(400, str(error))
        return web.Response(text=json_format.MessageToJson(converted), content_type="application/json", headers=allowed)

    async def preflight(request: web.Request) -> web.Response:
        why = _origin_error(request, ui)
        return refused(403, why) if why else web.Response(headers=allowed)

    app = web.Application()
    for path in ("/encode", "/decode", "/{token}/encode", "/{token}/decode"):
        app.router.add_post(path, answer)
        app.router.add_options(path, preflight)
    return app


def _origin_error(request: web.Request, ui: str) -> str:
    """Return the reason to refuse a request from a web page, or "". Programs send no origin, and are accepted."""
    origin = request.headers.get("Origin")
    return "" if origin in (None, ui) else f"this codec server refuses pages of {origin}: TEMPORAL_UI is {ui}"


def _has_token(request: web.Request, token: str) -> bool:
    """Return True if a request has the token. The comparison takes the same time for every value."""
    header = request.headers.get("Authorization", "")
    given = header.removeprefix(_BEARER) if header.startswith(_BEARER) else request.match_info.get("token", "")
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())
