"""A small Iceberg REST catalog in memory for failures that no real server produces on demand.

It implements the requests of a registration: configuration, namespaces, load, register and drop.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.harness.http_server import Handler, LocalServer

_Answer = tuple[int, dict[str, Any] | None]


class RestCatalogServer(LocalServer):
    """The server. It stores each table's metadata location. `fail` returns the error status of a request, or None."""

    def __init__(self, port: int = 0) -> None:
        self.tables: dict[tuple[str, str], str] = {}
        self.namespaces: set[str] = set()
        self.requests: list[str] = []
        self.authorizations: set[str | None] = set()
        self.fail: Callable[[str], int | None] = lambda request: None
        self.before_register: Callable[[], None] = lambda: None
        self.can_overwrite = True
        self.refusal = _error(409, "AlreadyExistsException")
        """The answer to an overwrite of a table while `can_overwrite` is false."""
        super().__init__(_Handler, port)

    @property
    def uri(self) -> str:
        """The address of the catalog."""
        return self.url

    def handle_request_of(self, method: str, parts: list[str], body: dict[str, Any]) -> _Answer:
        """Answer one request."""
        match method, parts:
            case "GET", ["config"]:
                return 200, {"defaults": {}, "overrides": {}}
            case "GET", ["namespaces"]:
                return 200, {"namespaces": [name.split("\x1f") for name in self.namespaces]}
            case "POST", ["namespaces"]:
                return self._create_namespace(body["namespace"])
            case "POST", ["namespaces", namespace, "register"]:
                return self._register((namespace, body["name"]), body)
            case _, ["namespaces", namespace, "tables", table] if (namespace, table) in self.tables:
                return self._table((namespace, table)) if method == "GET" else self._drop((namespace, table))
        return _error(404, "NoSuchTableException")

    def _create_namespace(self, elements: list[str]) -> _Answer:
        name = "\x1f".join(elements)
        if name in self.namespaces:
            return _error(409, "AlreadyExistsException")
        self.namespaces.add(name)
        return 200, {"namespace": elements, "properties": {}}

    def _drop(self, key: tuple[str, str]) -> _Answer:
        del self.tables[key]
        return 204, None

    def _register(self, key: tuple[str, str], body: dict[str, Any]) -> _Answer:
        self.before_register()
        if key in self.tables and not (body.get("overwrite") and self.can_overwrite):
            return self.refusal if body.get("overwrite") else _error(409, "AlreadyExistsException")
        self.tables[key] = body["metadata-location"]
        return self._table(key)

    def _table(self, key: tuple[str, str]) -> _Answer:
        location = self.tables[key]
        metadata = json.loads(Path(urlsplit(location).path).read_text())
        return 200, {"metadata-location": location, "metadata": metadata, "config": {}}


class _Handler(Handler):
    server: RestCatalogServer

    def do_GET(self) -> None:
        body = json.loads(self.body() or b"{}")
        request = f"{self.command} {urlsplit(self.path).path}"
        self.server.requests.append(request)
        self.server.authorizations.add(self.headers.get("Authorization"))
        status = self.server.fail(request)
        parts = [unquote(part) for part in urlsplit(self.path).path.removeprefix("/v1/").split("/")]
        code, answer = _error(status, "Failed") if status else self.server.handle_request_of(self.command, parts, body)
        content = json.dumps(answer).encode() if answer is not None else b""
        self.respond(code, content, {"Content-Type": "application/json"})

    do_POST = do_DELETE = do_GET


def _error(status: int, kind: str) -> _Answer:
    return status, {"error": {"message": f"answer {status}", "type": kind, "code": status}}
