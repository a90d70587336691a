"""A proxy before an S3-compatible store that answers chosen requests like a store in trouble."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Literal

from aiohttp import web
from yarl import URL

from tests.harness.proxies import ProxyServer

StoreFault = Literal["SlowDown", "InternalError", "NoSuchKey", "ExpiredToken", "slow", "cut"]
"""A fault: an error by its S3 code, a late answer (`slow`), or an answer that ends in the middle (`cut`)."""
StoreRule = Callable[[str, str, int], StoreFault | None]
"""A function that chooses the fault of a request by its kind (`list`, `head`, `read` or `write`), path and number.

The number counts the requests of the same kind.
"""
_STATUS = {"SlowDown": 503, "InternalError": 500, "NoSuchKey": 404, "ExpiredToken": 400}
_MESSAGES = {"ExpiredToken": "The provided token has expired."}
_LATE = 3.0
_NOT_PASSED_ON = {"transfer-encoding", "connection", "keep-alive", "expect"}


class StoreProxy(ProxyServer):
    """A proxy before a store. Requests keep their Host header, which their signatures cover."""

    _unpacks = False

    def __init__(self, target: str) -> None:
        self.rule: StoreRule = lambda kind, path, number: None
        self.seen: Counter[str] = Counter()
        super().__init__(target)

    def break_all(self, fault: StoreFault, *kinds: str, first: int | None = None) -> None:
        """Answer every request of these kinds with a fault from now on, or only the `first` ones."""
        self.seen.clear()
        self.rule = lambda kind, _, number: fault if kind in kinds and (first is None or number <= first) else None

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        kind, body = _kind_of(request), await request.read()
        self.seen[kind] += 1
        fault = self.rule(kind, request.path, self.seen[kind])
        if fault in _STATUS:
            return _error(request, fault)
        if fault == "slow":
            await asyncio.sleep(_LATE)
        headers = {key: value for key, value in request.headers.items() if key.lower() not in _NOT_PASSED_ON}
        url = URL(self._target + request.raw_path, encoded=True)
        async with self._session.request(request.method, url, headers=headers, data=body or None) as answer:
            content = await answer.read()
            kept = {key: value for key, value in answer.headers.items() if key.lower() not in _NOT_PASSED_ON}
        shown = web.StreamResponse(status=answer.status, headers=kept)
        await shown.prepare(request)
        if request.method != "HEAD":
            await shown.write(content[: len(content) // 2] if fault == "cut" else content)
        if fault == "cut" and request.transport:
            request.transport.abort()
        return shown


def _kind_of(request: web.Request) -> str:
    if request.method != "GET":
        return "head" if request.method == "HEAD" else "write"
    return "read" if request.path.strip("/").count("/") else "list"


def _error(request: web.Request, code: str) -> web.Response:
    """Return an error in S3's form. The answer to HEAD has no body."""
    message = _MESSAGES.get(code, "made up by the test")
    text = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    body = None if request.method == "HEAD" else text
    return web.Response(status=_STATUS[code], text=body, content_type="application/xml")
