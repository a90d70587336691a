"""The command that decrypts for the Temporal Web UI."""

from typing import Annotated

import typer
from aiohttp import web
from google.protobuf import json_format
from temporalio.api.common.v1 import Payloads

from cli.keys import refuse
from runtime.codec import AesCodec, read_codec
from sluice.errors import BadEnvironment
from sluice.settings import read_environment, read_settings

_HOST = "127.0.0.1"

app = typer.Typer(add_completion=False)


@app.command()
def codec_server(
    port: Annotated[int, typer.Option(help="The port on 127.0.0.1.", min=1, max=65535)] = 8234,
) -> None:
    """Decrypt for the Temporal Web UI: enter the address of this server there as the remote codec endpoint."""
    try:
        settings = read_settings(read_environment())
        codec = read_codec(settings.sluice_codec_key_file)
    except BadEnvironment as error:
        refuse(str(error))
    if codec is None:
        refuse("SLUICE_CODEC_KEY_FILE is not set: there is no key to decrypt with")
    print(f"Codec endpoint: http://{_HOST}:{port}", flush=True)
    web.run_app(codec_app(codec, settings.temporal_ui), host=_HOST, port=port, print=None)


def codec_app(codec: AesCodec, ui: str) -> web.Application:
    """Return the server: /encode and /decode, for pages of the Web UI alone.

    Source: Temporal's documentation of remote codec servers.
    """
    allowed = {
        "Access-Control-Allow-Origin": ui,
        "Access-Control-Allow-Methods": "POST",
        "Access-Control-Allow-Headers": "content-type,x-namespace",
        "Vary": "Origin",
    }

    async def answer(request: web.Request) -> web.Response:
        convert = codec.encode if request.path.endswith("/encode") else codec.decode
        try:
            payloads = json_format.Parse(await request.read(), Payloads())
            converted = Payloads(payloads=await convert(payloads.payloads))
        except (json_format.ParseError, ValueError) as error:
            return web.json_response({"message": str(error)}, status=400, headers=allowed)
        return web.Response(text=json_format.MessageToJson(converted), content_type="application/json", headers=allowed)

    async def preflight(_: web.Request) -> web.Response:
        return web.Response(headers=allowed)

    app = web.Application()
    for path in ("/encode", "/decode"):
        app.router.add_post(path, answer)
        app.router.add_options(path, preflight)
    return app
