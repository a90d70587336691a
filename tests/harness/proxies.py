"""Proxies that fail on purpose: two understand a catalog's requests, one only cuts connections.

They run in a thread of the test. A faulty request fails before it is executed; or it is executed, and its answer is
lost, replaced by 500 or 504, or late. A rule or a seed chooses the fault of each request. The same seed chooses the
same fault for the n-th request of each kind.
"""

import asyncio
import json
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Literal

import aiohttp
from aiohttp import web
from yarl import URL

Fault = Literal["refuse", "drop", "500", "504", "delay", "409", "repeat"]
FAULTS: tuple[Fault, ...] = ("refuse", "drop", "500", "504", "delay")
ICEBERG_FAULTS: tuple[Fault, ...] = (*FAULTS, "409", "repeat")
"""The faults of `FAULTS`, and two more: `409` claims a conflict and executes nothing; `repeat` executes twice.

The client gets the answer to the second execution.
"""
Rule = Callable[[str, str, int], Fault | None]
"""A function that chooses the fault of a request by its method, its kind and its number within the kind, from 1."""
_CONFLICT = {"message": "Requirement failed: made up by the test", "type": "CommitFailedException", "code": 409}
_CONNECTION_HEADERS = {"transfer-encoding", "content-length", "connection", "keep-alive", "host", "content-encoding"}


def kind_of(method: str, path: str) -> str:
    """Return the kind of a request to Nessie: `merge`, `commit`, `create`, `delete`, or `read`."""
    if method == "POST" and re.search(r"/(history/)?merge\b", path):
        return "merge"
    if method == "POST" and re.search(r"/(history/)?commit\b", path):
        return "commit"
    if method == "POST" and not path.rstrip("/").endswith("contents"):
        return "create"
    return "delete" if method == "DELETE" else "read"


def iceberg_kind_of(method: str, path: str, body: bytes = b"") -> str:
    """Return the kind of a request of Iceberg's REST protocol.

    It is `transaction` (several tables), `commit` (one table), `publish` (one table whose main moves), `create`,
    `delete` or `read`.

    Args:
        path: the path as sent: a slash in a name is `%2F`.
    """
    if method in ("GET", "HEAD"):
        return "read"
    if path.endswith("/transactions/commit"):
        return "transaction"
    if method == "POST" and re.search(r"/namespaces/[^/]+/tables/[^/]+$", path):
        updates = json.loads(body)["updates"]
        return "publish" if any(each.get("ref-name") == "main" for each in updates) else "commit"
    if method == "POST" and re.search(r"/(namespaces|tables|register)$", path):
        return "create"
    return "delete" if method == "DELETE" else "read"


def seeded(seed: int, share: float) -> Rule:
    """Return a rule by which this share of the requests fails, chosen by a seed."""

    def rule(method: str, kind: str, number: int) -> Fault | None:
        draw = random.Random(f"{seed} {method} {kind} {number}")
        return draw.choice(FAULTS) if draw.random() < share else None

    return rule


def once(kind: str, fault: Fault, number: int = 1, times: int = 1) -> Rule:
    """Return a rule by which `times` consecutive requests of a kind fail, from the one with `number` on."""
    return lambda _, requested, count: fault if requested == kind and number <= count < number + times else None


class ProxyThread:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)


class ProxyServer:
    """An HTTP server in a thread of its own, which answers by `_handle`."""

    _unpacks = True
    """True if the session unpacks compressed answers."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._thread = ProxyThread()
        self.uri: str = self._thread.do(self._start())

    async def _start(self) -> str:
        self._session = aiohttp.ClientSession(auto_decompress=self._unpacks)
        app = web.Application(client_max_size=2**28)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        (address,) = self._runner.addresses
        return f"http://127.0.0.1:{address[1]}"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        raise NotImplementedError

    def stop(self) -> None:
        """Stop serving."""

        async def end() -> None:
            await self._runner.cleanup()
            await self._session.close()

        self._thread.do(end())
        self._thread.stop()


class _CatalogProxy(ProxyServer):
    """A proxy before a catalog's server."""

    def __init__(self, target: str, rule: Rule) -> None:
        self.rule = rule
        self.done: list[tuple[str, str, Fault]] = []
        """The injected faults: method, kind, fault."""
        self._seen: Counter[str] = Counter()
        super().__init__(target.removesuffix("/"))

    def _kind_of(self, request: web.Request, body: bytes) -> str:
        raise NotImplementedError

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        kind = self._kind_of(request, body)
        self._seen[kind] += 1
        fault = self.rule(request.method, kind, self._seen[kind])
        if fault:
            self.done.append((request.method, kind, fault))
        if fault == "refuse":
            return web.Response(status=503)
        if fault == "409":
            return web.json_response({"error": _CONFLICT}, status=409)
        if fault == "delay":
            await asyncio.sleep(1)
        headers = {key: value for key, value in request.headers.items() if key.lower() not in _CONNECTION_HEADERS}
        target = self._target + request.raw_path
        try:
            for _ in range(2 if fault == "repeat" else 1):
                async with self._session.request(
                    request.method, URL(target, encoded=True), data=body or None, headers=headers
                ) as answer:
                    content = await answer.read()
                    status, kept = answer.status, answer.headers
        except aiohttp.ClientError:
            return web.Response(status=503)
        if fault == "drop":
            assert request.transport
            request.transport.abort()
            return web.Response(status=500)
        if fault in ("500", "504"):
            return web.Response(status=int(fault))
        shown = {key: value for key, value in kept.items() if key.lower() not in _CONNECTION_HEADERS}
        return web.Response(status=status, body=content, headers=shown)


class NessieProxy(_CatalogProxy):
    """A proxy before Nessie. Dry runs of merges count as reads."""

    def __init__(self, target: str, rule: Rule) -> None:
        super().__init__(target.split("/api/", maxsplit=1)[0], rule)
        self.uri += "/api/v2"

    def _kind_of(self, request: web.Request, body: bytes) -> str:
        kind = kind_of(request.method, request.path)
        return "read" if kind == "merge" and re.search(rb'"isDryRun":\s*true', body) else kind


class IcebergProxy(_CatalogProxy):
    """A proxy before a server of Iceberg's REST protocol."""

    def _kind_of(self, request: web.Request, body: bytes) -> str:
        return iceberg_kind_of(request.method, request.raw_path.split("?")[0], body)


class CuttingProxy:
    """A proxy before Temporal that forwards bytes and cuts every connection, on request or by a seed."""

    def __init__(self, host: str, port: int, seed: int | None = None) -> None:
        self._host, self._port = host, port
        self._draw = random.Random(seed) if seed is not None else None
        self._open: set[asyncio.StreamWriter] = set()
        self.cuts = 0
        self._thread = ProxyThread()
        self._thread.do(self._start())

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        if self._draw:
            self._cutting = asyncio.create_task(self._cut_at_random())

    async def _cut_at_random(self) -> None:
        assert self._draw
        while True:
            await asyncio.sleep(self._draw.uniform(0.5, 6))
            await self._cut()

    async def _cut(self) -> None:
        self.cuts += 1
        for writer in list(self._open):
            writer.transport.abort()

    def cut(self) -> None:
        """Cut every open connection. New connections are accepted."""
        self._thread.do(self._cut())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection(self._host, self._port)
        except OSError:
            writer.close()
            return
        writers = {writer, back}
        self._open |= writers
        await asyncio.gather(_pass(reader, back), _pass(there, writer))
        self._open -= writers

    def stop(self) -> None:
        """Stop serving, and cut open connections."""

        async def end() -> None:
            if self._draw:
                self._cutting.cancel()
            self._server.close()
            await self._cut()

        self._thread.do(end())
        self._thread.stop()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
