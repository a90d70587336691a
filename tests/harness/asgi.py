"""A browser in memory: requests to an ASGI application, with cookies, and without a server."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import unquote, urlencode

from starlette.types import ASGIApp, Message

HOST = "127.0.0.1:8240"


@dataclass(frozen=True)
class Answer:
    """A whole response."""

    status: int
    headers: dict[str, str]
    """Headers by their names in small letters."""
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Browser:
    """Sends requests to an application, and keeps the cookies that it sets. It follows no redirects."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.cookies: dict[str, str] = {}
        self.headers: list[tuple[str, str]] = []
        """Headers that something before the application adds to each request."""
        self.set_cookie = ""
        """The last `Set-Cookie` header."""

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.send("GET", path, headers=headers)

    async def post_form(self, path: str, fields: dict[str, str | Sequence[str]], **headers: str) -> Answer:
        body = urlencode(fields, doseq=True).encode()
        return await self.send("POST", path, body, {"content-type": "application/x-www-form-urlencoded", **headers})

    async def post_json(self, path: str, fields: dict[str, Any], **headers: str) -> Answer:
        return await self.send(
            "POST", path, json.dumps(fields).encode(), {"content-type": "application/json", **headers}
        )

    async def stream(self, path: str, is_enough: Callable[[str], bool]) -> Answer:
        """Read a response without an end, until its text is enough."""
        return await self.send("GET", path, is_enough=is_enough)

    async def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: dict[str, str] | None = None,
        is_enough: Callable[[str], bool] | None = None,
        leaves: asyncio.Event | None = None,
    ) -> Answer:
        """Send a request. In the names of headers, `_` means `-`.

        Args:
            is_enough: returns True for a text after which the browser leaves.
            leaves: the event at which the browser leaves without an answer.
        """
        given = {"host": HOST, **{name.replace("_", "-"): value for name, value in (headers or {}).items()}}
        if self.cookies:
            given.setdefault("cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        raw, _, query = path.partition("?")
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
            "path": unquote(raw), "raw_path": raw.encode(), "query_string": query.encode(), "root_path": "",
            "headers": [
                (name.lower().encode(), value.encode("latin-1")) for name, value in (*given.items(), *self.headers)
            ],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8240),
        }  # fmt: skip
        return self._answer(await self._exchange(scope, body, is_enough, leaves or asyncio.Event()))

    async def _exchange(
        self, scope: dict[str, Any], body: bytes, is_enough: Callable[[str], bool] | None, has_left: asyncio.Event
    ) -> list[Message]:
        requests: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        responses: list[Message] = []

        async def receive() -> Message:
            if requests:
                return requests.pop(0)
            await has_left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            responses.append(message)
            if is_enough and is_enough(_body(responses).decode()):
                has_left.set()

        try:
            await self.app(scope, receive, send)
        except Exception:
            if not responses:  # otherwise the error was answered, and goes on to the log of the server
                raise
        return responses

    def _answer(self, responses: list[Message]) -> Answer:
        pairs = [(name.decode().lower(), value.decode("latin-1")) for name, value in responses[0]["headers"]]
        for name, value in pairs:
            if name == "set-cookie":
                self.set_cookie = value
                self.cookies.update({key: each.value for key, each in SimpleCookie(value).items()})
        return Answer(responses[0]["status"], dict(pairs), _body(responses))


def _body(responses: Sequence[Message]) -> bytes:
    return b"".join(each.get("body", b"") for each in responses)
