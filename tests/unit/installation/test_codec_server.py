"""The codec server decrypts only for clients with its token, and for pages of the Web UI."""

import base64
from collections.abc import AsyncIterator

import pytest
from aiohttp.test_utils import TestClient, TestServer
from temporalio.api.common.v1 import Payload

from cli.installation.codec_server import codec_app
from runtime.codec import AesCodec

UI, TOKEN = "http://127.0.0.1:8233", "0123456789abcdef"
CODEC = AesCodec({"k": b"1" * 32})
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
async def client() -> AsyncIterator[TestClient]:  # type: ignore[type-arg]  # generic since aiohttp 3.11 alone
    async with TestClient(TestServer(codec_app(CODEC, UI, TOKEN))) as client:
        yield client


async def _body() -> dict[str, object]:
    (sealed,) = await CODEC.encode([Payload(metadata={"encoding": b"json/plain"}, data=b'"hello"')])
    metadata = {name: base64.b64encode(value).decode() for name, value in sealed.metadata.items()}
    return {"payloads": [{"metadata": metadata, "data": base64.b64encode(sealed.data).decode()}]}


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/decode", {}, 401),
        ("/encode", {}, 401),
        ("/decode", {"Authorization": f"Bearer {TOKEN}0"}, 401),
        ("/decode", {"Authorization": TOKEN}, 401),
        ("/decode", {"Authorization": "Bearer "}, 401),
        ("/decode", {"Authorization": "Bearer \u00e9"}, 401),
        ("/wrong/decode", {}, 401),
        (f"/{TOKEN}/decode", {"Authorization": "Bearer wrong"}, 401),
        ("/decode", BEARER, 200),
        (f"/{TOKEN}/decode", {}, 200),
        ("/decode", {**BEARER, "Origin": UI}, 200),
        ("/decode", {**BEARER, "Origin": "http://evil.example"}, 403),
        (f"/{TOKEN}/decode", {"Origin": "null"}, 403),
    ],
)
async def test_who_may_decrypt(client: TestClient, path: str, headers: dict[str, str], status: int) -> None:  # type: ignore[type-arg]
    answer = await client.post(path, json=await _body(), headers=headers)
    text = await answer.text()
    assert answer.status == status, text
    assert (base64.b64encode(b'"hello"').decode() in text) == (status == 200 and path.endswith("decode"))
    assert answer.headers["Access-Control-Allow-Origin"] == UI


async def test_a_page_of_the_web_ui_alone_is_allowed_to_ask(client: TestClient) -> None:  # type: ignore[type-arg]
    allowed = await client.options("/decode", headers={"Origin": UI})
    assert allowed.status == 200 and "authorization" in allowed.headers["Access-Control-Allow-Headers"]
    assert (await client.options("/decode", headers={"Origin": "http://evil.example"})).status == 403
