"""A real HTTP server that records requests and answers with the status that the test chooses."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.harness.http_server import Handler, LocalServer


@dataclass(frozen=True)
class ReceivedRequest:
    """One request that arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class HttpReceiver(LocalServer):
    """A server on this machine that records requests. `answer` returns the status of each by its number, from 1."""

    def __init__(self, port: int = 0) -> None:
        self.requests: list[ReceivedRequest] = []
        self.answer: Callable[[int], int] = lambda number: 204
        self.more_headers: dict[str, str] = {}
        super().__init__(_Handler, port)


class _Handler(Handler):
    server: HttpReceiver

    def do_POST(self) -> None:
        body = self.body()
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append(ReceivedRequest(self.command, self.path, headers, body))
        self.respond(self.server.answer(len(self.server.requests)), headers=self.server.more_headers)

    do_GET = do_POST
